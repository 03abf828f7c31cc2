-- purpose: From how many groups a step did each run learn, with what gradient, and replaying since when?
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
-- column grad_norm: gradient norm before clipping, mean over the steps
-- column replay_rule: when replay is to start: at_once, never, or after the first batch with this share right; null for an import
-- column replay_from: first step with replay in force; null if it never was [step]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    count(*) as steps,
    avg(steps.groups) as groups,
    avg(steps.signal_groups) as signal_groups,
    avg(steps.updated_groups) as updated_groups,
    avg(steps.grad_norm) as grad_norm,
    any_value(
        if(
            runs.settings ->> '$.experience.replay' = 'none',
            'never',
            runs.settings ->> '$.experience.start'
        )
    ) as replay_rule,
    min(steps.step) filter (where steps.replay_on) as replay_from
from steps
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, run
order by runs.study, runs.arm, runs.seed, run
