-- purpose: The older the experience, the further the policy has moved from it: what are its importance ratio and weight?
-- grain: an arm of a study (all runs asked about) and a class of ages of the trajectories that it replays, its own ones
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param width integer >= 1 = 10: steps of age a class
-- column study: study
-- column arm: arm
-- column least_age: least age of the class: 0, 10, 20, ... [step]
-- column replayed: replayed trajectories of that age
-- column with_gradient: of them, those that had a gradient: what follows is about these
-- column ratio_p05: 5 % quantile of their mean importance ratios
-- column ratio_p50: median of these
-- column ratio_p95: 95 % quantile of these
-- column ratio_ess: effective sample size of the token ratios / tokens, mean [share]
-- column weight_mean: mean factor of the advantage
select
    runs.study,
    runs.arm,
    (trajectories.step - trajectories.birth_step) // $width * $width as least_age,
    count(*) as replayed,
    count(trajectories.ratio_mean) as with_gradient,
    quantile_cont(trajectories.ratio_mean, 0.05) as ratio_p05,
    quantile_cont(trajectories.ratio_mean, 0.5) as ratio_p50,
    quantile_cont(trajectories.ratio_mean, 0.95) as ratio_p95,
    avg(trajectories.ratio_ess) as ratio_ess,
    avg(trajectories.weight_mean) as weight_mean
from trajectories
join scope($study, $run) as runs using (run)
where trajectories.replayed and starts_with(trajectories.source, run || ':')
group by all
order by all
