-- purpose: What did a run do with one question over the training?
-- grain: a trajectory of the question, by step and slot
-- param run text: run id
-- param question text: question id
-- column trajectory: trajectory id
-- column step: training step [step]
-- column group: place of the question's group in the batch
-- column slot: place in the group; a replayed trajectory has slot 0
-- column correct: graded right
-- column replayed: replayed, not sampled at this step
-- column mean_entropy: mean token entropy at this step [nat/token]
-- column bucket: bucket of the question after the step; null outside the buffer
-- column group_successes: k of its group at this step
select
    trajectory,
    step,
    "group",
    slot,
    correct,
    replayed,
    mean_entropy,
    bucket,
    group_successes
from trajectories
where run = $run and question = $question
order by step, "group", slot
