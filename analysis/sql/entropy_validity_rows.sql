-- purpose: The rows behind the AUROC of entropy and NLL: right fresh answers, valid chain or not
-- grain: a right fresh trajectory of a group with signal; at most about 24000 an arm, chosen by the hash of their id
-- param study: the study
-- column arm: arm
-- column seed: seed of the run
-- column question: question id
-- column level: the question's level
-- column bucket: k, right answers in the group (0 < k < K)
-- column window_start: first step of the window of 10 training steps: 1, 11, 21, ... [step]
-- column chain_valid: every step needed is shown and right
-- column mean_entropy: mean token entropy [nat/token]
-- column nll: mean negative log-probability [nat/token]
-- column length: response length [token]
-- column one_in: one in so many rows of this arm was kept (1: all)
with eligible as (
    select
        runs.arm,
        runs.seed,
        trajectories.trajectory,
        trajectories.question,
        trajectories.level,
        trajectories.bucket,
        (trajectories.step - 1) // 10 * 10 + 1 as window_start,
        trajectories.chain_valid,
        trajectories.mean_entropy,
        trajectories.nll,
        trajectories.length,
        greatest(1, ceil(count(*) over (partition by runs.arm) / 24000))::bigint as one_in
    from trajectories
    join runs using (run)
    where runs.study = $study
        and trajectories.correct
        and not trajectories.replayed
        and trajectories.bucket is not null
        and trajectories.chain_valid is not null
        and trajectories.mean_entropy is not null
        and trajectories.nll is not null
)
select * exclude (trajectory)
from eligible
where md5_number_lower(trajectory) % one_in = 0
order by arm, seed, trajectory
