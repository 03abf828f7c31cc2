-- purpose: Which samples of the benchmarks lack what the analyses need?
-- grain: a run that has samples
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column samples: rows of `evaluations`
-- column no_question: the question is not named, or not in `questions`
-- column ungraded: the grader could not judge
-- column no_response: the text is missing or empty
-- column not_finite: entropy or log-probability is infinite or no number
with known as (
    select distinct question from questions
),
counted as (
    select
        run,
        count(*) as samples,
        count(*) filter (where known.question is null) as no_question,
        count(*) filter (where correct is null) as ungraded,
        count(*) filter (where coalesce(response, '') = '') as no_response,
        count(*) filter (
            where not isfinite(coalesce(mean_entropy, 0) + coalesce(nll, 0))
        ) as not_finite
    from evaluations
    semi join scope($study, $run) as runs using (run)
    left join known on evaluations.question = known.question
    group by run
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    samples,
    no_question,
    ungraded,
    no_response,
    not_finite
from counted
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run
