-- purpose: The rows behind the AUROC of entropy and NLL: right fresh answers, valid chain or not
-- grain: a right fresh trajectory of a group with signal; at most about `most` an arm of a study, chosen by the hash of their id
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- param most integer >= 1 = 24000: about how many rows an arm to keep
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column question: question id
-- column level: the question's level
-- column bucket: k, right answers in the group (0 < k < K)
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column chain_valid: every step needed is shown and right
-- column mean_entropy: mean token entropy [nat/token]
-- column nll: mean negative log-probability [nat/token]
-- column length: response length [token]
-- column one_in: one in so many rows of this arm was kept (1: all)
with eligible as not materialized (
    select
        runs.study,
        runs.arm,
        runs.seed,
        trajectories.trajectory,
        trajectories.question,
        trajectories.level,
        trajectories.bucket,
        (trajectories.step - 1) // $window * $window + 1 as window_start,
        trajectories.chain_valid,
        trajectories.mean_entropy,
        trajectories.nll,
        trajectories.length
    from trajectories
    join scope($study, $run) as runs using (run)
    where trajectories.correct
        and not trajectories.replayed
        and trajectories.bucket is not null
        and trajectories.chain_valid is not null
        and trajectories.mean_entropy is not null
        and trajectories.nll is not null
),
counted as (
    select study, arm, greatest(1, ceil(count(*) / $most))::bigint as one_in
    from eligible
    group by study, arm
)
select eligible.* exclude (trajectory), counted.one_in
from eligible
join counted using (study, arm)
where case
    -- The same rows with every version of DuckDB; over millions of rows it takes seconds.
    when counted.one_in <= 20 then md5_number_lower(eligible.trajectory) % counted.one_in = 0
    else hash(eligible.trajectory) % counted.one_in = 0
end
order by study, arm, eligible.seed, eligible.trajectory
