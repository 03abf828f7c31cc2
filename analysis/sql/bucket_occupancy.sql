-- purpose: How full is each bucket of the replay buffer, how many questions have retired, as training goes on?
-- grain: a run, a step, and a bucket
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param every integer >= 1 = 5: every so many steps, and the last one
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column step: training step [step]
-- column bucket: bucket, 1 .. K-1 right answers
-- column questions: questions in it after the step
-- column retired_questions: questions retired so far
-- column train_questions: questions of the train split; of a data set those that the catalog holds, of any study, up to its limit
with places as (
    select
        run,
        step,
        retired_questions,
        bucket_sizes,
        unnest(generate_series(1, len(bucket_sizes))) as bucket
    from steps
    qualify step % $every = 0 or step = max(step) over (partition by run)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    places.step,
    places.bucket,
    places.bucket_sizes[places.bucket] as questions,
    places.retired_questions,
    train_questions(runs.settings) as train_questions
from places
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run, places.step, places.bucket
