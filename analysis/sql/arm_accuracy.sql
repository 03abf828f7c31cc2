-- purpose: How often is each test question answered right, by each final model and by the base model?
-- grain: a run, a benchmark and a question
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm; `base` for the untrained model
-- column seed: seed of the run; null for the base model
-- column run: run id
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column benchmark: test_id, test_ood or a data set's name
-- column domain: `in` or `out` of the distribution trained on
-- column question: question id
-- column level: the question's level
-- column samples: graded samples
-- column correct: right samples
-- column extracted: graded samples from which an answer could be read
-- column checked: right samples whose chain could be checked
-- column flawed: right samples whose chain is not valid
select
    runs.study,
    runs.arm,
    runs.seed,
    runs.run,
    evaluations.step,
    evaluations.benchmark,
    domain_of(evaluations.benchmark, max(evaluations.domain)) as domain,
    evaluations.question,
    max(evaluations.level) as level,
    count(evaluations.correct) as samples,
    count(*) filter (where evaluations.correct) as correct,
    count(*) filter (
        where evaluations.extracted is not null and evaluations.correct is not null
    ) as extracted,
    count(*) filter (where evaluations.correct and evaluations.chain_valid is not null) as checked,
    count(*) filter (where evaluations.correct and not evaluations.chain_valid) as flawed
from evaluations
join scope($study, $run) as runs using (run)
where evaluations.benchmark <> 'validation'
group by
    runs.study,
    runs.arm,
    runs.seed,
    runs.run,
    runs.settings,
    runs.steps,
    evaluations.step,
    evaluations.benchmark,
    evaluations.question
qualify evaluations.step = tested_step(
    runs.settings,
    runs.steps,
    max(evaluations.step) over (partition by runs.run, evaluations.benchmark)
)
order by runs.study, runs.arm, runs.seed, runs.run, evaluations.benchmark, evaluations.question
