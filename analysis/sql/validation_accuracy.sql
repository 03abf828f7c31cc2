-- purpose: How often is each validation question answered right, at every measured step of training?
-- grain: a run, a measured training step and a validation question
-- param study: the study
-- column arm: arm
-- column seed: seed of the run
-- column step: training step [step]
-- column question: question id
-- column samples: graded samples
-- column correct: right samples
select
    runs.arm,
    runs.seed,
    evaluations.step,
    evaluations.question,
    count(evaluations.correct) as samples,
    count(*) filter (where evaluations.correct) as correct
from evaluations
join runs using (run)
where runs.study = $study and evaluations.benchmark = 'validation'
group by all
order by runs.arm, runs.seed, evaluations.step, evaluations.question
