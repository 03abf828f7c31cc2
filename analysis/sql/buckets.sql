-- purpose: How do the groups move between difficulties, and how sure is the policy in each?
-- grain: an arm of a study (all its seeds), a window of steps, a number of successes in the group
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column group_successes: k, right trajectories in the group, the replayed too
-- column groups: groups with k successes
-- column mean_entropy: mean over the groups' fresh trajectories [nat/token]
select
    runs.study,
    runs.arm,
    (visits.step - 1) // $window * $window + 1 as first_step,
    visits.successes as group_successes,
    count(*) as groups,
    sum(visits.mean_entropy * visits.fresh)
        / sum(visits.fresh) filter (where visits.mean_entropy is not null) as mean_entropy
from visits
join scope($study, $run) as runs using (run)
group by all
order by all
