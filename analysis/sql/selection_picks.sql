-- purpose: What would each metric have replayed, and how often is that what the lowest mean entropy would?
-- grain: an arm and seed of a study, a question, and a metric by which the lowest is taken, or `random`
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column question: question id
-- column metric: mean_entropy, released (what the released code takes for it, LUFFY#57), summed_entropy, length, nll, birth_entropy; random: the mean over the candidates
-- column draws: visits of the question with more than one stored trajectory
-- column same: of them, the metric takes the one of lowest mean entropy; random: expected
-- column summed_entropy: sum over the draws of the pick's mean token entropy at that step [nat/token]
-- column summed_length: sum over the draws of its length [token]
-- column checked: draws in which the chain of every candidate was checked
-- column valid: of those, the pick's chain is valid; random: expected
with stored as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        candidates.*,
        trajectories.chain_valid,
        count(*) over this_draw as number,
        -- Of some picks known, of others not, would compare different draws.
        count(trajectories.chain_valid) over this_draw = number as all_checked
    from candidates
    join scope($study, $run) as runs using (run)
    left join trajectories
        on trajectories.run = candidates.run
        and trajectories.trajectory = candidates.source
    window this_draw as (partition by candidates.run, candidates.step, candidates."group")
),
weighted as (
    -- How much of a draw's choice falls on a candidate: all or nothing, at random a share of it.
    select
        *,
        unnest([
            'mean_entropy', 'released', 'summed_entropy', 'length', 'nll', 'birth_entropy', 'random'
        ]) as metric,
        unnest([
            (mean_entropy_rank = 0)::int,
            (released_rank = 0)::int,
            (summed_entropy_rank = 0)::int,
            (length_rank = 0)::int,
            (nll_rank = 0)::int,
            (birth_entropy_rank = 0)::int,
            1 / number
        ]) as weight
    from stored
    where number > 1
)
select
    study,
    arm,
    seed,
    question,
    metric,
    -- The weights of a draw sum to 1.
    round(sum(weight))::bigint as draws,
    sum(weight * (mean_entropy_rank = 0)::int) as same,
    sum(weight * mean_entropy) as summed_entropy,
    sum(weight * length) as summed_length,
    round(coalesce(sum(weight) filter (where all_checked), 0))::bigint as checked,
    coalesce(sum(weight * chain_valid::int) filter (where all_checked), 0) as valid
from weighted
group by all
order by study, arm, seed, question, metric
