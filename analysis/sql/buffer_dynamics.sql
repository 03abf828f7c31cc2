-- purpose: How does the replay buffer fill, and how much of the batch carries signal?
-- grain: a run and a training step
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column step: training step [step]
-- column buffer_questions: questions in the buffer after the step
-- column buffer_trajectories: trajectories in the buffer after the step
-- column retired_questions: questions retired so far
-- column train_questions: questions of the train split; of a data set those that the catalog holds, of any study, up to its limit
-- column signal_share: groups with a non-zero advantage [share]
-- column entropy: mean token entropy of the fresh rollouts [nat/token]
select
    runs.study,
    runs.arm,
    runs.seed,
    steps.step,
    steps.buffer_questions,
    steps.buffer_trajectories,
    steps.retired_questions,
    train_questions(runs.settings) as train_questions,
    steps.signal_groups / nullif(steps.groups, 0) as signal_share,
    steps.entropy
from steps
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, runs.run, steps.step
