-- purpose: How often is each test question answered right, by each tested model and by the base model?
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
    study,
    arm,
    seed,
    run,
    step,
    benchmark,
    domain_of(benchmark, max(domain)) as domain,
    question,
    max(level) as level,
    count(correct) as samples,
    count(*) filter (where correct) as correct,
    count(*) filter (where extracted is not null and correct is not null) as extracted,
    count(*) filter (where correct and chain_valid is not null) as checked,
    count(*) filter (where correct and not chain_valid) as flawed
from tested_samples($study, $run)
group by study, arm, seed, run, step, benchmark, question
order by study, arm, seed, run, benchmark, question
