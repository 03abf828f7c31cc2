-- purpose: The rows behind every AUROC of entropy and NLL: right fresh answers, their markers, and whether their chain is valid
-- grain: a right fresh trajectory of a group with signal whose entropy is known; at most about `most` an arm of a study, chosen by the hash of their id
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- param most integer >= 1 = 24000: about how many rows an arm to keep
-- param judge text = llm: the judge whose verdict counts where the task has no exact check; null: none
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column question: question id
-- column level: the question's level
-- column bucket: k, right answers in the group (0 < k < K)
-- column difficulty: hard (k/K <= 1/4), medium, easy (k/K >= 3/4)
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column chain_valid: every step needed is shown and right; null if nobody checked
-- column judge: who says so: `exact`, or the judge; null if nobody checked
-- column code: contains code
-- column shortcut: answers without showing the steps; null outside `chain`
-- column repetition: repeats itself
-- column mean_entropy: mean token entropy [nat/token]
-- column nll: mean negative log-probability; null if not logged [nat/token]
-- column length: response length [token]
-- column one_in: one in so many rows of this arm was kept (1: all)
with eligible as not materialized (
    select
        runs.study,
        runs.arm,
        runs.seed,
        runs.run,
        trajectories.trajectory,
        trajectories.question,
        trajectories.level,
        trajectories.bucket,
        trajectories.difficulty,
        (trajectories.step - 1) // $window * $window + 1 as window_start,
        trajectories.chain_valid,
        trajectories.code,
        trajectories.shortcut,
        trajectories.repetition,
        trajectories.mean_entropy,
        trajectories.nll,
        trajectories.length
    from trajectories
    join scope($study, $run) as runs using (run)
    where trajectories.correct
        and not trajectories.replayed
        and trajectories.bucket is not null
        and trajectories.mean_entropy is not null
),
counted as (
    select study, arm, greatest(1, ceil(count(*) / $most))::bigint as one_in
    from eligible
    group by study, arm
),
kept as (
    select eligible.*, counted.one_in
    from eligible
    join counted using (study, arm)
    where case
        -- The same rows with every version of DuckDB; over millions of rows it takes seconds.
        when counted.one_in <= 20
            then md5_number_lower(eligible.trajectory) % counted.one_in = 0
        else hash(eligible.trajectory) % counted.one_in = 0
    end
)
select
    kept.study,
    kept.arm,
    kept.seed,
    kept.question,
    kept.level,
    kept.bucket,
    kept.difficulty,
    kept.window_start,
    coalesce(kept.chain_valid, judgements.valid) as chain_valid,
    case
        when kept.chain_valid is not null then 'exact'
        when judgements.valid is not null then judgements.judge
    end as judge,
    kept.code,
    kept.shortcut,
    kept.repetition,
    kept.mean_entropy,
    kept.nll,
    kept.length,
    kept.one_in
from kept
left join judgements
    on judgements.run = kept.run
    and judgements.trajectory = kept.trajectory
    and judgements.judge = $judge
order by kept.study, kept.arm, kept.seed, kept.trajectory
