-- purpose: Which are the trajectories that a check of the data quality found?
-- grain: a trajectory
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null, which reads every response of them: seconds
-- param check text = no_entropy: a column of `quality_trajectories` from `duplicate_id` on
-- param most integer >= 1 = 100: trajectories of a run at most, the first ones
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column trajectory: trajectory id
-- column step: training step [step]
-- column group: place of the question's group in the batch
-- column slot: place in the group
-- column question: question id
-- column correct: graded right; null when it was not graded
-- column length: response tokens [token]
-- column mean_entropy: mean token entropy [nat/token]
-- column ratio_mean: mean importance ratio
-- column response: the response
with known as (
    select distinct question from questions
),
found as (
    select trajectories.*
    from trajectories
    semi join scope($study, $run) as runs using (run)
    left join known on trajectories.question = known.question
    where
        case $check
            when 'duplicate_id' then (run, trajectory) in (
                select (run, trajectory)
                from trajectories
                semi join scope($study, $run) as runs using (run)
                group by run, trajectory
                having count(*) > 1
            )
            when 'no_question' then known.question is null
            when 'no_response' then coalesce(response, '') = ''
            when 'no_length' then length is null
            when 'ungraded' then correct is null
            when 'no_entropy' then mean_entropy is null
            when 'no_ratio' then trained and advantage <> 0 and ratio_mean is null
            when 'no_source' then replayed and "source" is null
            when 'not_finite' then not isfinite(
                coalesce(mean_entropy, 0) + coalesce(nll, 0) + coalesce(behaviour_nll, 0)
                + coalesce(advantage, 0) + coalesce(ratio_mean, 0) + coalesce(ratio_max, 0)
                + coalesce(weight_mean, 0) + coalesce(weight_max, 0)
            )
            else error('no check of trajectories is called ' || coalesce($check, 'null'))
        end
    qualify row_number() over (partition by run order by step, "group", slot) <= $most
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    trajectory,
    step,
    "group",
    slot,
    question,
    correct,
    length,
    mean_entropy,
    ratio_mean,
    response
from found
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run, step, "group", slot
