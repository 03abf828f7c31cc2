-- purpose: What had been spent when validation accuracy was measured: questions, tokens and time?
-- grain: a run and a measured training step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column step: training step [step]
-- column distinct_questions: distinct fresh questions so far; null if not logged
-- column fresh_questions: fresh questions drawn so far, repeats included; null if not logged
-- column sampled_tokens: tokens sampled so far; null if not logged [token]
-- column seconds: training time so far; null if not logged [s]
with measured as (
    select distinct run, step
    from evaluations
    where benchmark = 'validation'
),
draws as (
    select run, step, count(*) filter (where experiential is not true) as drawn
    from visits
    group by run, step
),
spent as (
    select
        measured.run,
        measured.step,
        sum(draws.drawn)::bigint as fresh_questions
    from measured
    left join draws on draws.run = measured.run and draws.step <= measured.step
    group by all
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    spent.step,
    if(spent.step = 0, 0, steps.distinct_questions) as distinct_questions,
    if(spent.step = 0, 0, spent.fresh_questions) as fresh_questions,
    if(spent.step = 0, 0, steps.total_sampled_tokens) as sampled_tokens,
    if(spent.step = 0, 0, steps.run_seconds) as seconds
from spent
join scope($study, $run) as runs using (run)
left join steps using (run, step)
order by runs.study, runs.arm, runs.seed, run, spent.step
