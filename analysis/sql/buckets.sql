-- purpose: How do the groups move between difficulties, and how sure is the policy in each?
-- grain: an arm (all its seeds), a window of 10 steps, a number of successes in the group
-- param study: the study
-- column arm: arm
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column group_successes: k, right trajectories in the group, the replayed too
-- column groups: groups with k successes
-- column mean_entropy: mean over the groups' fresh trajectories [nat/token]
with one_group as (
    select
        run,
        step,
        "group",
        any_value(group_successes) as group_successes,
        sum(mean_entropy) filter (where not replayed) as entropy,
        count(mean_entropy) filter (where not replayed) as fresh
    from trajectories
    group by run, step, "group"
)
select
    runs.arm,
    (one_group.step - 1) // 10 * 10 + 1 as first_step,
    one_group.group_successes,
    count(*) as groups,
    sum(one_group.entropy) / sum(one_group.fresh) as mean_entropy
from one_group
join runs using (run)
where runs.study = $study
group by all
order by all
