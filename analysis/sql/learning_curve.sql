-- purpose: How does accuracy on a benchmark change with training?
-- grain: a run at one evaluated step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param benchmark text: validation, or a test that is asked at several steps
-- column study: study
-- column arm: arm
-- column seed: seed of the run; null for the base model
-- column run: run id
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column questions: questions asked
-- column samples: graded samples over all questions
-- column accuracy: right samples [share]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    evaluations.step,
    count(distinct evaluations.question) as questions,
    count(evaluations.correct) as samples,
    avg(evaluations.correct::int) as accuracy
from evaluations
join scope($study, $run) as runs using (run)
where evaluations.benchmark = known_benchmark($benchmark, $study, $run)
group by all
order by runs.study, runs.arm, runs.seed, run, evaluations.step
