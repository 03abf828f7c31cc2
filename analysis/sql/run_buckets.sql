-- purpose: How many groups of one run have k of K right answers?
-- grain: a pair of k and K
-- param run: run id
-- column group_successes: k, right trajectories in the group
-- column group_size: K, graded trajectories in the group
-- column groups: groups with k of K
with one_group as (
    select distinct step, "group", group_successes, group_size
    from trajectories
    where run = $run
)
select group_successes, group_size, count(*) as groups
from one_group
group by all
order by group_size, group_successes
