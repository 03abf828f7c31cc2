-- purpose: What did it take each run to reach an accuracy: steps, tokens, seconds, questions?
-- grain: a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param target double: the accuracy to reach [share]
-- param benchmark text = validation: the benchmark
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column best_accuracy: the highest accuracy at any evaluated step; null if never evaluated [share]
-- column step: first evaluated step with the target or more; null if never, like the rest [step]
-- column accuracy: the accuracy there [share]
-- column sampled_tokens: tokens sampled until then [token]
-- column seconds: training time until then, evaluation excluded [s]
-- column distinct_questions: distinct fresh questions seen until then
with accuracies as (
    select run, step, avg(correct::int) as accuracy
    from evaluations
    where benchmark = known_benchmark($benchmark, $study, $run)
    group by run, step
),
reached as (
    select
        run,
        max(accuracy) as best_accuracy,
        min(step) filter (where accuracy >= $target) as step,
        arg_min(accuracy, step) filter (where accuracy >= $target) as accuracy
    from accuracies
    group by run
)
select
    runs.study,
    runs.arm,
    runs.seed,
    runs.run,
    reached.best_accuracy,
    reached.step,
    reached.accuracy,
    if(reached.step = 0, 0, steps.total_sampled_tokens) as sampled_tokens,
    if(reached.step = 0, 0, steps.run_seconds) as seconds,
    if(reached.step = 0, 0, steps.distinct_questions) as distinct_questions
from scope($study, $run) as runs
left join reached using (run)
left join steps on steps.run = runs.run and steps.step = reached.step
order by runs.study, runs.arm, runs.seed, runs.run
