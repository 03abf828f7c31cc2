-- purpose: How old is replayed experience, how far has the policy moved since, and what does shaping leave of its gradient?
-- grain: a run that replays trajectories of its own
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column replayed: replayed trajectories sampled earlier in this run
-- column age_p05: 5 % quantile of their age: steps since they were sampled [step]
-- column age_p50: median age [step]
-- column age_p95: 95 % quantile of it [step]
-- column age_max: greatest age [step]
-- column with_gradient: of them, those that had a gradient: what follows is about these
-- column ratio_p05: 5 % quantile of their mean importance ratios
-- column ratio_p50: median of these
-- column ratio_p95: 95 % quantile of these
-- column ratio_ess: effective sample size of the token ratios / tokens, mean [share]
-- column gradient_kept: mean over them of what shaping by f(w) = w / (w + beta) leaves of a token's gradient, w f'(w) = f(w) (1 - f(w)); null for an arm that shapes otherwise or clips replayed tokens [share]
-- column gradient_at_one: the same at ratio 1, where the policy has not moved: beta / (1 + beta)^2 [share]
with shaped as (
    select
        *,
        if(
            settings ->> '$.objective.shaping' = 'ratio'
            and settings ->> '$.objective.clip_after_start' in ('none', 'fresh'),
            (settings ->> '$.objective.beta')::double,
            null
        ) as beta
    from scope($study, $run)
),
aged as (
    select
        shaped.study,
        shaped.arm,
        shaped.seed,
        shaped.beta,
        trajectories.run,
        trajectories.step - trajectories.birth_step as age,
        trajectories.ratio_mean,
        trajectories.ratio_ess,
        -- The mean square of the weights is their squared mean over their effective sample size.
        if(
            shaped.beta is null,
            null,
            trajectories.weight_mean
            - trajectories.weight_mean ** 2 / nullif(trajectories.weight_ess, 0)
        ) as gradient_kept
    from trajectories
    join shaped using (run)
    -- A trajectory of another run or of an expert has no age in this one.
    where trajectories.replayed and starts_with(trajectories.source, trajectories.run || ':')
)
select
    study,
    arm,
    seed,
    run,
    count(*) as replayed,
    quantile_cont(age, 0.05) as age_p05,
    quantile_cont(age, 0.5) as age_p50,
    quantile_cont(age, 0.95) as age_p95,
    max(age) as age_max,
    count(ratio_mean) as with_gradient,
    quantile_cont(ratio_mean, 0.05) as ratio_p05,
    quantile_cont(ratio_mean, 0.5) as ratio_p50,
    quantile_cont(ratio_mean, 0.95) as ratio_p95,
    avg(ratio_ess) as ratio_ess,
    avg(gradient_kept) as gradient_kept,
    beta / (1 + beta) ** 2 as gradient_at_one
from aged
group by study, arm, seed, run, beta
order by study, arm, seed, run
