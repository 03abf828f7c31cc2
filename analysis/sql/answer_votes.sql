-- purpose: Which answers did the tested model give to each test question, and how often?
-- grain: a run, a benchmark, a question and an answer
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm; `base` for the untrained model
-- column seed: seed of the run; null for the base model
-- column run: run id
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column benchmark: benchmark
-- column question: question id
-- column answer: the answer in its normal form, as read in old logs; null: no answer could be read
-- column votes: graded samples with this answer
-- column correct: it is right
select
    study,
    arm,
    seed,
    run,
    step,
    benchmark,
    question,
    coalesce(vote, extracted) as answer,
    count(*) as votes,
    bool_or(correct) as correct
from tested_samples($study, $run)
where correct is not null
group by study, arm, seed, run, step, benchmark, question, answer
order by study, arm, seed, run, benchmark, question, answer
