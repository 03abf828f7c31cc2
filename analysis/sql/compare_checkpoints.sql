-- purpose: At which steps was each run evaluated, on which benchmark?
-- grain: a run, a benchmark and a step at which the run was evaluated on it
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed; null for a base model
-- column run: run id
-- column benchmark: benchmark
-- column domain: `in` or `out` of the distribution trained on; null for validation
-- column step: step of the checkpoint [step]
-- column samples: samples of all questions
-- column graded: graded ones
-- column correct: right ones
select
    runs.study,
    runs.arm,
    runs.seed,
    runs.run,
    evaluations.benchmark,
    domain_of(evaluations.benchmark, max(evaluations.domain)) as domain,
    evaluations.step,
    count(*) as samples,
    count(evaluations.correct) as graded,
    count(*) filter (where evaluations.correct) as correct
from evaluations
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, runs.run, evaluations.benchmark, evaluations.step
order by
    runs.study, runs.arm, runs.seed, runs.run, evaluations.benchmark, evaluations.step
