-- purpose: How likely is at least one of k samples right (pass@k, unbiased), for every k up to the number of samples?
-- grain: a run, a step of its checkpoints, a benchmark and a k
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param benchmark text = null: the benchmark; all if null
-- param step integer >= 0 = null: step of the checkpoint; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column step: step of the checkpoint; 0 is the base model [step]
-- column benchmark: benchmark
-- column k: samples allowed
-- column pass_at_k: 1 - C(n - c, k) / C(n, k) with c of n graded samples right, mean over the questions that count [share]
-- column questions: questions that count: with k graded samples or more; where they get fewer, the curve changes its subject
-- column all_questions: questions with a graded sample
with answers as (
    select
        run,
        step,
        benchmark,
        question,
        count(correct) as n,
        count(*) filter (where correct) as c
    from evaluations
    semi join scope($study, $run) as runs using (run)
    where ($benchmark is null or benchmark = known_benchmark($benchmark, $study, $run))
        and ($step is null or step = $step)
    group by all
    having count(correct) > 0
),
-- Questions with equal counts have equal curves.
kinds as (
    select
        run,
        step,
        benchmark,
        n,
        c,
        count(*) as questions,
        sum(questions) over (partition by run, step, benchmark) as all_questions,
        unnest(range(1, n + 1)) as k
    from answers
    group by run, step, benchmark, n, c
),
curves as (
    select
        *,
        pass_at_k(n, c, k) as pass_at_k
    from kinds
)
select
    runs.study,
    runs.arm,
    runs.seed,
    curves.run,
    curves.step,
    curves.benchmark,
    curves.k,
    sum(curves.questions * curves.pass_at_k) / sum(curves.questions) as pass_at_k,
    sum(curves.questions)::bigint as questions,
    max(curves.all_questions)::bigint as all_questions
from curves
join scope($study, $run) as runs using (run)
group by all
order by runs.study, runs.arm, runs.seed, curves.run, curves.step, curves.benchmark, curves.k
