-- purpose: How do validation accuracy and its lead over on-policy training grow, by step and tokens?
-- grain: a run and a measured training step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column step: training step [step]
-- column accuracy: mean over validation questions of the share of right samples [share]
-- column sampled_tokens: tokens sampled so far; 0 at step 0 [token]
-- column gain: accuracy minus that of the study's `on_policy` with the same seed at the same step [share]
with by_question as (
    select
        evaluations.run,
        evaluations.step,
        evaluations.question,
        avg(evaluations.correct::int) as accuracy
    from evaluations
    where evaluations.benchmark = 'validation'
    group by all
),
curve as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        runs.run,
        by_question.step,
        avg(by_question.accuracy) as accuracy
    from by_question
    join runs using (run)
    group by all
)
select
    curve.study,
    curve.arm,
    curve.seed,
    curve.step,
    curve.accuracy,
    coalesce(steps.total_sampled_tokens, 0) as sampled_tokens,
    curve.accuracy - reference.accuracy as gain
from curve
semi join scope($study, $run) as asked using (run)
left join steps on steps.run = curve.run and steps.step = curve.step
left join curve as reference
    on reference.arm = 'on_policy'
    and reference.study = curve.study
    and reference.seed = curve.seed
    and reference.step = curve.step
order by curve.study, curve.arm, curve.seed, curve.run, curve.step
