-- purpose: How old is what is replayed, as training goes on?
-- grain: a run and a window of steps in which it replays trajectories of its own
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column replayed: replayed trajectories sampled earlier in this run
-- column age_p05: 5 % quantile of their age: steps since they were sampled [step]
-- column age_p50: median age [step]
-- column age_p95: 95 % quantile [step]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    (trajectories.step - 1) // $window * $window + 1 as first_step,
    count(*) as replayed,
    quantile_cont(trajectories.step - trajectories.birth_step, 0.05) as age_p05,
    quantile_cont(trajectories.step - trajectories.birth_step, 0.5) as age_p50,
    quantile_cont(trajectories.step - trajectories.birth_step, 0.95) as age_p95
from trajectories
join scope($study, $run) as runs using (run)
-- A trajectory of another run or of an expert has no age in this one.
where trajectories.replayed and starts_with(trajectories.source, run || ':')
group by all
order by all
