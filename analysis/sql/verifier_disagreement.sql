-- purpose: How far does a judge agree with the grader and with the exact check of the chain?
-- grain: a run, a judge of one version, and what it is held against: `correct` or `chain_valid`
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column judge: which judge
-- column version: its version
-- column against: column of `trajectories` that the verdict is compared with
-- column verdicts: verdicts of the judge
-- column undecided: of these, without a decision
-- column unknown: of those decided, the other side unknown
-- column compared: decided on both sides
-- column both_yes: both say yes
-- column judge_only: the judge alone says yes
-- column exact_only: the other side alone says yes
-- column both_no: both say no
-- column agreement: of those compared, the same on both sides [share]
-- column kappa: Cohen's: agreement beyond chance, 1 at most; null where chance explains all
with pairs as (
    select
        judgements.run,
        judgements.judge,
        judgements.version,
        unnest(['chain_valid', 'correct']) as against,
        judgements.valid,
        unnest([trajectories.chain_valid, trajectories.correct]) as exact
    from judgements
    semi join scope($study, $run) as runs using (run)
    left join trajectories using (run, trajectory)
),
cells as (
    select
        run,
        judge,
        version,
        against,
        count(*) as verdicts,
        count(*) filter (where valid is null) as undecided,
        count(*) filter (where valid is not null and exact is null) as unknown,
        count(*) filter (where valid is not null and exact is not null) as compared,
        count(*) filter (where valid and exact) as both_yes,
        count(*) filter (where valid and not exact) as judge_only,
        count(*) filter (where not valid and exact) as exact_only,
        count(*) filter (where not valid and not exact) as both_no
    from pairs
    group by run, judge, version, against
),
rates as (
    select
        *,
        (both_yes + both_no) / nullif(compared, 0) as agreement,
        -- What two sides would agree on with their own shares of yes but nothing in common.
        (
            (both_yes + judge_only) * (both_yes + exact_only)
            + (both_no + judge_only) * (both_no + exact_only)
        ) / nullif(compared * compared, 0) as by_chance
    from cells
)
select
    runs.study,
    runs.arm,
    runs.seed,
    rates.* exclude (by_chance),
    (agreement - by_chance) / nullif(1 - by_chance, 0) as kappa
from rates
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run, judge, version, against
