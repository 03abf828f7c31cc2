-- purpose: From where to where does the map of step, bucket and entropy go?
-- grain: an arm of a study (all runs asked about) that has a trajectory
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column trajectories: trajectories
-- column last_step: last step of one [step]
-- column group_size: K, the largest group
-- column known: trajectories whose mean token entropy is known
-- column greatest: greatest of these [nat/token]
-- column mean: mean [nat/token]
-- column deviation: standard deviation [nat/token]
with finite as (
    select run, step, group_size, if(isfinite(mean_entropy), mean_entropy, null) as entropy
    from trajectories
)
select
    runs.study,
    runs.arm,
    count(*) as trajectories,
    max(finite.step) as last_step,
    max(finite.group_size) as group_size,
    count(finite.entropy) as known,
    max(finite.entropy) as greatest,
    avg(finite.entropy) as mean,
    stddev_pop(finite.entropy) as deviation
from finite
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm
order by runs.study, runs.arm
