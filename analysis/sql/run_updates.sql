-- purpose: From how many groups a step did each run learn, and with what gradient?
-- grain: a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column steps: training steps logged [step]
-- column groups: groups a step, mean
-- column signal_groups: groups a step with right and wrong answers, mean
-- column updated_groups: groups a step with a non-zero advantage in the update, mean
-- column total_updated_groups: the same, sum over the steps
-- column grad_norm: gradient norm before clipping, mean over the steps
-- column idle_steps: steps at which no group was learned from [step]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    count(*) as steps,
    avg(steps.groups) as groups,
    avg(steps.signal_groups) as signal_groups,
    avg(steps.updated_groups) as updated_groups,
    sum(steps.updated_groups)::bigint as total_updated_groups,
    avg(steps.grad_norm) as grad_norm,
    count(*) filter (where steps.updated_groups = 0) as idle_steps
from steps
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, run
order by runs.study, runs.arm, runs.seed, run
