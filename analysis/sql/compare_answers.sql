-- purpose: How many samples of each benchmark question did a checkpoint get right?
-- grain: a run and a question of the benchmark, at one evaluated step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param benchmark text: the benchmark
-- param step integer >= 0 = null: step of the checkpoints; of each run its last evaluated one if null
-- column study: study
-- column arm: arm
-- column seed: seed; null for a base model
-- column run: run id
-- column step: step of the checkpoint [step]
-- column question: question id
-- column level: the question's level
-- column graded: graded samples
-- column correct: right ones
with answers as (
    select
        run,
        step,
        question,
        max(level) as level,
        count(correct) as graded,
        count(*) filter (where correct) as correct
    from evaluations
    where benchmark = $benchmark
        and run in (select run from scope($study, $run))
        and step = coalesce($step, step)
    group by run, step, question
    qualify step = max(step) over (partition by run)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    answers.run,
    answers.step,
    answers.question,
    answers.level,
    answers.graded,
    answers.correct
from answers
join runs using (run)
order by runs.study, runs.arm, runs.seed, answers.run, answers.question
