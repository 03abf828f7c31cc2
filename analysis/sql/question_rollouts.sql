-- purpose: Every trajectory of a question over the training, run by run
-- grain: a trajectory in the batch of a step, fresh or replayed
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param question text = null: question id; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column trajectory: trajectory id
-- column step: training step [step]
-- column group: place of its group in the batch
-- column slot: place in the group
-- column replayed: replayed, not sampled at this step
-- column source: replayed only: id of the trajectory as first sampled
-- column correct: graded right; null: ungraded
-- column mean_entropy: mean token entropy at this step [nat/token]
-- column length: response tokens [token]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    trajectories.question,
    trajectories.trajectory,
    trajectories.step,
    trajectories."group",
    trajectories.slot,
    trajectories.replayed,
    trajectories.source,
    trajectories.correct,
    trajectories.mean_entropy,
    trajectories.length
from trajectories
join scope($study, $run) as runs using (run)
where $question is null or trajectories.question = $question
order by
    runs.study,
    runs.arm,
    runs.seed,
    run,
    trajectories.question,
    trajectories.step,
    trajectories."group",
    trajectories.slot
