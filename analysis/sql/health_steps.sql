-- purpose: The steps of every run as alarms take them
-- grain: a run and a training step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column step: training step [step]
-- column reward: mean reward of the fresh rollouts [share]
-- column entropy: mean token entropy of the fresh rollouts [nat/token]
-- column signal_groups: groups with unequal rewards
-- column unanswered: fresh rollouts graded wrong for want of a readable answer; null: not logged
-- column ungraded: trajectories that the grader could not judge
-- column sampled_tokens: tokens sampled in the step [token]
-- column length: mean response length of the fresh rollouts [token]
-- column loss: mean over the updates
-- column grad_norm: gradient norm before clipping, mean over the updates
-- column skipped_updates: updates left out for a non-finite or huge gradient
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    steps.step,
    steps.reward,
    steps.entropy,
    steps.signal_groups,
    steps.unanswered,
    steps.ungraded,
    steps.sampled_tokens,
    steps.length,
    steps.loss,
    steps.grad_norm,
    steps.skipped_updates
from steps
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run, steps.step
