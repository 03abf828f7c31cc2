-- purpose: Where do trajectories lie on the map of step, bucket and entropy, and what are they like there?
-- grain: an arm of a study (all runs asked about) and a cell: a window of steps, a number of right answers in the group, an entropy bin; an axis that is not asked for is null
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = null: steps a window; null: no such axis
-- param by_bucket boolean = true: whether the number of right answers in the group is an axis
-- param width double = null: width of an entropy bin [nat/token]; null: no such axis
-- param bins integer >= 1 = 40: entropy bins; the last one holds all above
-- param replayed boolean = null: replayed or fresh trajectories only; both if null
-- param correct boolean = null: right or wrong ones only; all if null
-- column study: study
-- column arm: arm
-- column first_step: first step of the window [step]
-- column bucket: k, right ones in the group; 0 = failed
-- column entropy_bin: bin, from 0, of the mean token entropy; null where that is unknown
-- column group_size: K, the largest group in the cell
-- column trajectories: trajectories
-- column mean_entropy: mean of their mean token entropies [nat/token]
-- column right_share: of those graded, right [share]
-- column flawed_share: of those whose chain is known, flawed [share]
-- column length: mean response length [token]
with finite as (
    select
        *,
        -- What is not a number is not known.
        if(isfinite(mean_entropy), mean_entropy, null) as entropy
    from trajectories
    where ($replayed is null or replayed = $replayed)
        and ($correct is null or correct = $correct)
)
select
    runs.study,
    runs.arm,
    (finite.step - 1) // $window * $window + 1 as first_step,
    if($by_bucket, finite.group_successes, null) as bucket,
    -- `least` would take the last bin for a null.
    if(
        finite.entropy / $width is null,
        null,
        least(floor(finite.entropy / $width), $bins - 1)
    )::bigint as entropy_bin,
    max(finite.group_size) as group_size,
    count(*) as trajectories,
    avg(finite.entropy) as mean_entropy,
    avg(finite.correct::int) as right_share,
    avg((not finite.chain_valid)::int) as flawed_share,
    avg(finite.length) as length
from finite
join scope($study, $run) as runs using (run)
group by all
order by all
