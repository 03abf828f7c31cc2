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
-- column birth_step: the step whose policy sampled it [step]
-- column correct: graded right
-- column chain_valid: every step needed is shown and right
-- column group_successes: k of its group at this step
-- column group_size: K of its group at this step
-- column bucket_drawn: bucket that the question was drawn from
-- column bucket: bucket after this step: k if 0 < k < K, else null
-- column mean_entropy: mean token entropy under the policy at this step [nat/token]
-- column nll: mean negative log-probability under the policy at this step [nat/token]
-- column behaviour_nll: the same under the policy that sampled it [nat/token]
-- column advantage: reward minus the group's mean reward
-- column ratio_mean: mean importance ratio; null where it had no gradient
-- column ratio_min: least importance ratio; null as well, like the rest
-- column ratio_max: greatest importance ratio
-- column ratio_ess: effective sample size of the token ratios / tokens [share]
-- column weight_mean: mean factor of the advantage: ratio, clipped or shaped
-- column weight_min: least factor of the advantage
-- column weight_max: greatest factor of the advantage
-- column clipped_share: tokens whose gradient the clip removed [share]
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
    birth_step,
    correct,
    chain_valid,
    group_successes,
    group_size,
    bucket_drawn,
    bucket,
    mean_entropy,
    nll,
    behaviour_nll,
    advantage,
    ratio_mean,
    ratio_min,
    ratio_max,
    ratio_ess,
    weight_mean,
    weight_min,
    weight_max,
    clipped_share
from family
order by run, step, "group", slot
