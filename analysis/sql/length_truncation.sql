-- purpose: How long are right and wrong responses of each bucket, how often cut off, and does length stand behind entropy?
-- grain: an arm of a study, a window of steps, right or wrong fresh responses, and a bucket
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = null: steps a window; all steps as one if null
-- column study: study
-- column arm: arm
-- column first_step: first step of the window; null if all steps are one [step]
-- column correct: graded right; null: ungraded
-- column successes: k, right ones of the group that count for the bucket
-- column size: K, how many count
-- column trajectories: fresh trajectories
-- column length: mean response tokens, end token included [token]
-- column sd_length: their standard deviation; null for a single one [token]
-- column truncated_share: cut off at the length limit [share]
-- column mean_entropy: mean of their mean token entropies [nat/token]
-- column length_entropy_correlation: Pearson's, of length and mean token entropy over trajectories; null where one of them does not vary. Far from 0: compare entropies at equal length only
with moments as (
    select
        runs.study,
        runs.arm,
        (trajectories.step - 1) // $window * $window + 1 as first_step,
        trajectories.correct,
        trajectories.group_successes as successes,
        trajectories.group_size as size,
        count(*) as trajectories,
        avg(trajectories.length) as length,
        stddev_samp(trajectories.length) as sd_length,
        avg((trajectories.finish = 'length')::int) as truncated_share,
        avg(trajectories.mean_entropy) as mean_entropy,
        corr(trajectories.length, trajectories.mean_entropy) as correlation
    from trajectories
    join scope($study, $run) as runs using (run)
    where not trajectories.replayed
    group by all
)
select
    * exclude (correlation),
    if(isfinite(correlation), correlation, null) as length_entropy_correlation
from moments
order by study, arm, first_step, correct, successes, size
