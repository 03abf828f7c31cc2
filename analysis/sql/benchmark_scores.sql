-- purpose: What does each tested model score on each benchmark, and how much of that is answering at all?
-- grain: a run and a benchmark
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm; `base` for the untrained model
-- column seed: seed of the run; null for the base model
-- column run: run id
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column benchmark: benchmark
-- column domain: `in` or `out` of the distribution trained on
-- column questions: questions with a graded sample
-- column samples: graded samples
-- column ungraded: samples that the grader could not judge; in none of the shares
-- column k: least graded samples of a question
-- column accuracy: avg@k: right samples of a question, mean over the questions [share]
-- column pass_at_k: at least one of k samples right, unbiased, mean over the questions [share]
-- column maj_at_n: the most frequent answer of all n graded samples of a question is right (`exgrpo scores` has draws of k); answers that tie share the vote; mean over the questions [share]
-- column answered: graded samples from which an answer could be read [share]
-- column accuracy_answered: right ones among those [share]
-- column truncated: graded samples cut at the length limit [share]
-- column tokens: mean length of a graded sample [token]
with tested as (from tested_samples($study, $run)),
votes as (
    select
        run,
        benchmark,
        question,
        coalesce(vote, extracted) as answer,
        bool_or(correct) as correct,
        count(*) as votes,
        rank() over (partition by run, benchmark, question order by count(*) desc) as place
    from tested
    where correct is not null and extracted is not null
    group by run, benchmark, question, answer
),
elected as (
    select run, benchmark, question, avg(correct::int) as right_vote
    from votes
    where place = 1
    group by run, benchmark, question
),
answers as (
    select
        run,
        benchmark,
        question,
        count(correct) as n,
        count(*) filter (where correct) as c,
        min(count(correct)) over (partition by run, benchmark) as k
    from tested
    group by run, benchmark, question
    having count(correct) > 0
),
scored as (
    select
        run,
        benchmark,
        count(*) as questions,
        min(k) as k,
        avg(c / n) as accuracy,
        avg(pass_at_k(n, c, k)) as pass_at_k,
        avg(coalesce(right_vote, 0)) as maj_at_n
    from answers
    left join elected using (run, benchmark, question)
    group by run, benchmark
),
samples as (
    select
        study,
        arm,
        seed,
        run,
        step,
        benchmark,
        domain_of(benchmark, max(domain)) as domain,
        count(correct) as samples,
        count(*) - count(correct) as ungraded,
        count(extracted) filter (where correct is not null) as answered,
        count(*) filter (where correct) as "right",
        avg((finish = 'length')::int) filter (where correct is not null) as truncated,
        avg(length) filter (where correct is not null) as tokens
    from tested
    group by study, arm, seed, run, step, benchmark
)
select
    samples.study,
    samples.arm,
    samples.seed,
    samples.run,
    samples.step,
    samples.benchmark,
    samples.domain,
    coalesce(scored.questions, 0) as questions,
    samples.samples,
    samples.ungraded,
    scored.k,
    scored.accuracy,
    scored.pass_at_k,
    scored.maj_at_n,
    samples.answered / nullif(samples.samples, 0) as answered,
    samples."right" / nullif(samples.answered, 0) as accuracy_answered,
    samples.truncated,
    samples.tokens
from samples
left join scored using (run, benchmark)
order by samples.study, samples.arm, samples.seed, samples.run, samples.benchmark
