-- purpose: How often is each validation question answered right, at every measured step of training?
-- grain: a run, a measured training step and a validation question
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column step: training step [step]
-- column question: question id
-- column samples: graded samples
-- column correct: right samples
select
    runs.study,
    runs.arm,
    runs.seed,
    evaluations.step,
    evaluations.question,
    count(evaluations.correct) as samples,
    count(*) filter (where evaluations.correct) as correct
from evaluations
join scope($study, $run) as runs using (run)
where evaluations.benchmark = 'validation'
group by runs.study, runs.arm, runs.seed, runs.run, evaluations.step, evaluations.question
order by runs.study, runs.arm, runs.seed, runs.run, evaluations.step, evaluations.question
