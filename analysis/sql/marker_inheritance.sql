-- purpose: Do new marked right answers copy the first marked trajectory replayed for their question?
-- grain: a run and a question, and whether the answers were sampled after that replay; those before are the placebo
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param most integer >= 1 = 100: most answers of a run before the replays, and most after them, chosen by the hash of their id
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column after: sampled after the replay; false: before it or at its step, the replayed one left out
-- column pairs: marked right fresh answers, each compared with the marked trajectory replayed for its question
-- column overlap: mean Jaccard index of their sets of 8-grams of characters [share]
-- column shuffled_overlap: the same with the one of the next question of the run by level; the last by level has that of the first [share]
-- column difference: mean over the pairs of overlap minus shuffled_overlap; null if no other question of the run has one [share]
with marked_right as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        run,
        trajectories.step,
        trajectories."group",
        trajectories.slot,
        trajectories.question,
        trajectories.level,
        trajectories.trajectory,
        trajectories.source,
        trajectories.replayed
    from trajectories
    join scope($study, $run) as runs using (run)
    where (trajectories.replayed or trajectories.correct)
        and by_marker(
            $marker,
            not trajectories.chain_valid,
            trajectories.shortcut,
            trajectories.code,
            trajectories.repetition
        )
),
replays as (
    select * from marked_right
    where replayed
    qualify row_number() over (partition by run, question order by step, "group", slot) = 1
),
shuffled as (
    -- The next question of the run, by level; the last takes the first.
    select
        *,
        coalesce(
            lead(trajectory) over next_one,
            nullif(first_value(trajectory) over next_one, trajectory)
        ) as other
    from replays
    window next_one as (partition by run order by level, md5(question))
),
chosen as (
    select
        shuffled.study,
        shuffled.arm,
        shuffled.seed,
        run,
        question,
        marked_right.step > shuffled.step as after,
        marked_right.trajectory,
        shuffled.trajectory as replay,
        shuffled.other
    from marked_right
    join shuffled using (run, question)
    where not marked_right.replayed and marked_right.trajectory is distinct from shuffled.source
    qualify row_number() over (
        partition by run, after
        order by md5_number_lower(marked_right.trajectory), marked_right.trajectory
    ) <= $most
),
wanted as (
    select trajectory from chosen
    union select replay from chosen
    union select other from chosen
),
grams as (
    select
        trajectory,
        list_distinct(list_transform(
            range(1, greatest(length(response) - 6, 2)),
            lambda place: substring(response, place, 8)
        )) as grams
    from trajectories
    semi join wanted using (trajectory)
),
shared as (
    select
        chosen.*,
        len(list_intersect(answer.grams, replay.grams)) as common,
        common / (len(answer.grams) + len(replay.grams) - common) as overlap,
        len(list_intersect(answer.grams, other.grams)) as other_common,
        other_common / (len(answer.grams) + len(other.grams) - other_common) as shuffled_overlap
    from chosen
    join grams as answer on answer.trajectory = chosen.trajectory
    join grams as replay on replay.trajectory = chosen.replay
    left join grams as other on other.trajectory = chosen.other
)
select
    study,
    arm,
    seed,
    run,
    question,
    after,
    count(*) as pairs,
    avg(overlap) as overlap,
    avg(shuffled_overlap) as shuffled_overlap,
    avg(overlap - shuffled_overlap) as difference
from shared
group by study, arm, seed, run, question, after
order by study, arm, seed, run, question, after
