-- purpose: Which trajectories of a run lack what the analyses need?
-- grain: a run that has trajectories
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null, which reads every response of them: seconds
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column trajectories: rows of `trajectories`
-- column replayed: of them, replayed
-- column with_gradient: of them, in the update with an advantage other than 0
-- column duplicate_id: rows that share their id with another row of the run
-- column no_question: the question is not named, or not in `questions`
-- column no_response: the text is missing or empty
-- column no_length: the number of tokens is missing
-- column ungraded: the grader could not judge, or was not asked
-- column no_entropy: the mean entropy is missing
-- column no_ratio: of those with a gradient, without an importance ratio
-- column no_source: of those replayed, without the id of the trajectory as first sampled
-- column not_finite: a number is infinite or no number
with known as (
    select distinct question from questions
),
ids as (
    select run, sum(number)::bigint as duplicate_id
    from (
        select run, trajectory, count(*) as number
        from trajectories
        semi join scope($study, $run) as runs using (run)
        group by run, trajectory
    )
    where number > 1
    group by run
),
counted as (
    select
        run,
        count(*) as trajectories,
        count(*) filter (where replayed) as replayed,
        count(*) filter (where trained and advantage <> 0) as with_gradient,
        count(*) filter (where known.question is null) as no_question,
        count(*) filter (where coalesce(response, '') = '') as no_response,
        count(*) filter (where length is null) as no_length,
        count(*) filter (where correct is null) as ungraded,
        count(*) filter (where mean_entropy is null) as no_entropy,
        count(*) filter (where trained and advantage <> 0 and ratio_mean is null) as no_ratio,
        count(*) filter (where replayed and "source" is null) as no_source,
        count(*) filter (
            -- A sum of numbers is finite only if each is.
            where not isfinite(
                coalesce(mean_entropy, 0) + coalesce(nll, 0) + coalesce(behaviour_nll, 0)
                + coalesce(advantage, 0) + coalesce(ratio_mean, 0) + coalesce(ratio_max, 0)
                + coalesce(weight_mean, 0) + coalesce(weight_max, 0)
            )
        ) as not_finite
    from trajectories
    semi join scope($study, $run) as runs using (run)
    left join known on trajectories.question = known.question
    group by run
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    trajectories,
    replayed,
    with_gradient,
    coalesce(duplicate_id, 0) as duplicate_id,
    no_question,
    no_response,
    no_length,
    ungraded,
    no_entropy,
    no_ratio,
    no_source,
    not_finite
from counted
join scope($study, $run) as runs using (run)
left join ids using (run)
order by runs.study, runs.arm, runs.seed, run
