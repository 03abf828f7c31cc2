-- purpose: From which buckets are questions drawn, and how full were these when they were?
-- grain: a run, a step in which questions were drawn, and a bucket
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column step: training step [step]
-- column bucket: bucket, 1 .. K-1 right answers
-- column questions: questions in it before the step: after the one before
-- column drawn: questions drawn from it
with drawn as (
    select run, step, bucket_drawn as bucket, count(*) as drawn
    from visits
    where experiential and bucket_drawn is not null
    group by run, step, bucket_drawn
),
sizes as (
    select run, step, lag(bucket_sizes) over (partition by run order by step) as before
    from steps
    qualify lag(step) over (partition by run order by step) = step - 1
),
places as (
    select run, step, before, unnest(generate_series(1, len(before))) as bucket
    from sizes
    semi join drawn using (run, step)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    places.step,
    places.bucket,
    places.before[places.bucket] as questions,
    coalesce(drawn.drawn, 0) as drawn
from places
join scope($study, $run) as runs using (run)
left join drawn using (run, step, bucket)
order by runs.study, runs.arm, runs.seed, run, places.step, places.bucket
