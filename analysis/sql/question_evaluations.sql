-- purpose: How often is a benchmark's question answered right, checkpoint by checkpoint?
-- grain: a benchmark, a question, an arm and an evaluated step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param question text = null: question id; all if null
-- column study: study
-- column benchmark: benchmark
-- column question: question id
-- column arm: arm
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column runs: runs of the arm that were asked then
-- column samples: graded samples
-- column right: of them, right
-- column accuracy: right / samples [share]
select
    runs.study,
    evaluations.benchmark,
    evaluations.question,
    runs.arm,
    evaluations.step,
    count(distinct run) as runs,
    count(evaluations.correct) as samples,
    count(*) filter (where evaluations.correct) as "right",
    avg(evaluations.correct::int) as accuracy
from evaluations
join scope($study, $run) as runs using (run)
where $question is null or evaluations.question = $question
group by runs.study, evaluations.benchmark, evaluations.question, runs.arm, evaluations.step
order by runs.study, evaluations.benchmark, evaluations.question, runs.arm, evaluations.step
