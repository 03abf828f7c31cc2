-- purpose: How far has the policy moved from the one that sampled replayed experience, by its age?
-- grain: an arm of a study (all its seeds) and an age of replayed trajectories, in bands that double: 1, 2-3, 4-7, ...
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column age_from: least age in the band: steps since the trajectory was sampled, in the same run [step]
-- column age_to: greatest age in the band [step]
-- column trajectories: replayed trajectories of this age
-- column with_gradient: of them, those that had a gradient: what follows is about these
-- column ratio_mean: mean of their mean importance ratios
-- column ratio_p05: 5 % quantile of these
-- column ratio_p50: median of these
-- column ratio_p95: 95 % quantile of these
-- column ratio_min: least token ratio
-- column ratio_max: greatest token ratio
-- column ratio_ess: effective sample size of the token ratios / tokens, mean [share]
-- column weight_mean: mean factor of the advantage
-- column weight_ess: effective sample size of the factors / tokens, mean [share]
-- column clipped_share: tokens whose gradient the clip removed, mean over trajectories [share]
with aged as (
    select
        runs.study,
        runs.arm,
        trajectories.*,
        trajectories.step - trajectories.birth_step as age,
        case when age > 0 then (2 ** floor(log2(age)))::bigint else 0 end as age_from
    from trajectories
    join scope($study, $run) as runs using (run)
    -- A trajectory of another run or of an expert has no age in this one.
    where trajectories.replayed and starts_with(trajectories.source, trajectories.run || ':')
)
select
    study,
    arm,
    age_from,
    greatest(2 * age_from - 1, 0) as age_to,
    count(*) as trajectories,
    count(ratio_mean) as with_gradient,
    avg(ratio_mean) as ratio_mean,
    quantile_cont(ratio_mean, 0.05) as ratio_p05,
    quantile_cont(ratio_mean, 0.5) as ratio_p50,
    quantile_cont(ratio_mean, 0.95) as ratio_p95,
    min(ratio_min) as ratio_min,
    max(ratio_max) as ratio_max,
    avg(ratio_ess) as ratio_ess,
    avg(weight_mean) as weight_mean,
    avg(weight_ess) as weight_ess,
    avg(clipped_share) as clipped_share
from aged
group by study, arm, age_from
order by study, arm, age_from
