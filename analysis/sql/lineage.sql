-- purpose: Where does a trajectory come from, and when was it replayed?
-- grain: the trajectory as first sampled, then each replay of it, by step
-- param trajectory text: id of the first sampling or of any replay of it
-- column trajectory: trajectory id
-- column run: run id
-- column step: the step that trained on it [step]
-- column group: place of its group in the batch
-- column slot: place in the group
-- column question: question id
-- column replayed: false for the first sampling
-- column correct: graded right
-- column chain_valid: every step needed is shown and right
-- column group_successes: k of its group at this step
-- column bucket_drawn: bucket that the question was drawn from
-- column mean_entropy: mean token entropy under the policy at this step [nat/token]
-- column nll: mean negative log-probability under the policy at this step [nat/token]
-- column behaviour_nll: the same under the policy that sampled it [nat/token]
-- column advantage: reward minus the group's mean reward
-- column ratio_mean: mean importance ratio; null where it had no gradient
-- column weight_mean: mean factor of the advantage; null as well
with origin as (
    select coalesce(source, trajectory) as id
    from trajectories
    where trajectory = $trajectory
),
-- One after the other each is a look-up; with `or` every row would be tried.
family as (
    select * from trajectories where trajectory in (from origin)
    union all
    select * from trajectories where source in (from origin) and trajectory not in (from origin)
)
select
    trajectory,
    run,
    step,
    "group",
    slot,
    question,
    replayed,
    correct,
    chain_valid,
    group_successes,
    bucket_drawn,
    mean_entropy,
    nll,
    behaviour_nll,
    advantage,
    ratio_mean,
    weight_mean
from family
order by run, step, "group", slot
