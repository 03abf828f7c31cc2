-- purpose: On what does a training step spend its time, and what does the buffer take?
-- grain: a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column steps: training steps logged [step]
-- column rollout_seconds: sampling a step, mean; null if not logged [s]
-- column select_seconds: choosing what to replay a step, mean; null if not logged [s]
-- column update_seconds: the update a step, mean; null if not logged [s]
-- column seconds: the whole step, mean; null if not logged [s]
-- column buffer_bytes: size of the buffer after the last step; null if not logged [B]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    count(*) as steps,
    avg(steps.rollout_seconds) as rollout_seconds,
    avg(steps.select_seconds) as select_seconds,
    avg(steps.update_seconds) as update_seconds,
    avg(steps.seconds) as seconds,
    arg_max(steps.buffer_bytes, steps.step) as buffer_bytes
from steps
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, run
order by runs.study, runs.arm, runs.seed, run
