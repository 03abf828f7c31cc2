-- purpose: What lay in the replay buffer after a step?
-- grain: a run, and a question that lay in its buffer
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param step integer >= 0 = null: the step; the last one if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column bucket: bucket that it lay in; null if in none: it could not be drawn
-- column stored: its stored trajectories
-- column entered: step at which it last came into the buffer [step]
-- column draws: visits at which it was drawn so far
-- column replays: its trajectories replayed so far
-- column last_replay: step of the last of these; null if there is none [step]
with events as (
    -- What retires or leaves drops all that was stored. Rows of a step are in the order of the log.
    select
        run,
        step,
        question,
        event,
        bucket_after,
        experience.rowid as place,
        max(experience.rowid) filter (event in ('retired', 'left'))
            over (partition by run, question) as dropped
    from experience
    where $step is null or step <= $step
),
questions as (
    select
        run,
        question,
        -- A replay tells the bucket that it was drawn from; a fresh visit may have moved it since.
        arg_max_null(bucket_after, place) filter (event <> 'replayed') as bucket,
        count(*) filter (event = 'stored' and place > coalesce(dropped, -1))
        - count(*) filter (event = 'evicted' and place > coalesce(dropped, -1)) as stored,
        max(step) filter (event in ('entered', 'returned')) as entered,
        count(*) filter (event = 'replayed') as replays,
        max(step) filter (event = 'replayed') as last_replay
    from events
    group by run, question
),
draws as (
    select run, question, count(*) as draws
    from visits
    where experiential and ($step is null or step <= $step)
    group by run, question
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    questions.question,
    questions.bucket,
    questions.stored,
    questions.entered,
    coalesce(draws.draws, 0) as draws,
    questions.replays,
    questions.last_replay
from questions
join scope($study, $run) as runs using (run)
left join draws using (run, question)
where questions.bucket is not null or questions.stored > 0
order by runs.study, runs.arm, runs.seed, run, questions.question
