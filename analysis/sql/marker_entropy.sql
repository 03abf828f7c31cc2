-- purpose: Do right answers with a marker have higher entropy and less often a valid chain? The counts and sums behind it
-- grain: an arm and seed of a study, a question, its difficulty at the time, a marker, and whether the answers have it
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param judge text = llm: the judge whose verdict counts where the task has no exact check; null: none
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column question: question id
-- column difficulty: hard (k/K <= 1/4), medium, easy (k/K >= 3/4); k right answers in the group of K
-- column marker: code, repetition or shortcut
-- column marked: the answers have it
-- column right_fresh: right fresh trajectories of groups with signal for which that is known
-- column with_entropy: of them, entropy known
-- column summed_entropy: sum over these of the mean token entropy [nat/token]
-- column checked: of the right fresh ones, chain checked
-- column valid: of those, chain valid
with kinds as (
    -- One row an answer would be three with the markers: count the answers of a kind first.
    select
        runs.study,
        runs.arm,
        runs.seed,
        trajectories.question,
        trajectories.difficulty,
        trajectories.code,
        trajectories.repetition,
        trajectories.shortcut,
        count(*) as right_fresh,
        count(trajectories.mean_entropy) as with_entropy,
        sum(trajectories.mean_entropy) as summed_entropy,
        count(coalesce(trajectories.chain_valid, judgements.valid)) as checked,
        count(*) filter (where coalesce(trajectories.chain_valid, judgements.valid)) as valid
    from trajectories
    join scope($study, $run) as runs using (run)
    left join judgements
        on judgements.run = trajectories.run
        and judgements.trajectory = trajectories.trajectory
        and judgements.judge = $judge
    where trajectories.correct
        and not trajectories.replayed
        and trajectories.difficulty is not null
    group by all
),
marked as (
    select
        kinds.* exclude (code, repetition, shortcut),
        unnest(['code', 'repetition', 'shortcut']) as marker,
        unnest([code, repetition, shortcut]) as marked
    from kinds
)
select
    study,
    arm,
    seed,
    question,
    difficulty,
    marker,
    marked,
    sum(right_fresh)::bigint as right_fresh,
    sum(with_entropy)::bigint as with_entropy,
    sum(summed_entropy) as summed_entropy,
    sum(checked)::bigint as checked,
    sum(valid)::bigint as valid
from marked
where marked is not null
group by all
order by study, arm, seed, question, difficulty, marker, marked
