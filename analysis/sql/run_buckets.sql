-- purpose: How many groups of one run have k of K right answers?
-- grain: a pair of k and K
-- param run text: run id
-- column group_successes: k, right trajectories in the group
-- column group_size: K, graded trajectories in the group
-- column groups: groups with k of K
select successes as group_successes, size as group_size, count(*) as groups
from visits
where run = $run
group by all
order by group_size, group_successes
