-- purpose: What happened to a question in the replay buffer of each run?
-- grain: an event of the buffer, in the order in which they happened
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param question text = null: question id; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column step: training step [step]
-- column event: entered, moved, stored, replayed, retired, returned, left or evicted
-- column trajectory: the trajectory concerned (stored, replayed, evicted)
-- column bucket_before: bucket before the event
-- column bucket_after: bucket after the event
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    experience.question,
    experience.step,
    experience.event,
    experience.trajectory,
    experience.bucket_before,
    experience.bucket_after
from experience
join scope($study, $run) as runs using (run)
where $question is null or experience.question = $question
order by
    runs.study, runs.arm, runs.seed, run, experience.question, experience.step, experience.rowid
