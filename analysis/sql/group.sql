-- purpose: Which trajectories were trained on together for one question?
-- grain: a trajectory of the group, in slot order
-- param run text: run id
-- param step integer >= 0: training step
-- param group integer >= 0: place of the group in the batch, from 0
-- column trajectory: trajectory id
-- column slot: place in the group; a replayed trajectory has slot 0
-- column question: question id
-- column replayed: replayed, not sampled at this step
-- column source: id of the trajectory as first sampled, if replayed
-- column birth_step: the step whose policy sampled it [step]
-- column response: the response
-- column length: response tokens [token]
-- column finish: `stop` or `length`
-- column extracted: the answer read from the response
-- column correct: graded right
-- column chain_valid: every step needed is shown and right
-- column mean_entropy: mean token entropy at this step [nat/token]
-- column nll: mean negative log-probability at this step [nat/token]
-- column advantage: reward minus the group's mean reward
-- column ratio_mean: mean importance ratio; null where it had no gradient
select
    trajectory,
    slot,
    question,
    replayed,
    source,
    birth_step,
    response,
    length,
    finish,
    extracted,
    correct,
    chain_valid,
    mean_entropy,
    nll,
    advantage,
    ratio_mean
from trajectories
where run = $run and step = $step and "group" = $group
order by slot
