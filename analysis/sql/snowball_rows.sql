-- purpose: Which marked trajectories were replayed most, and what came after them?
-- grain: a run and a marked trajectory that it replayed, the most replayed of a run first
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param by_later boolean = false: those with most marked answers afterwards first
-- param most integer >= 1 = 100: most rows of a run
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column source: the trajectory as first sampled
-- column opened: a trajectory of the catalog to open: its first replay
-- column replays: how often it was replayed
-- column first_replay: step of the first replay [step]
-- column last_replay: step of the last one [step]
-- column earlier_right: right fresh answers to the question until its first replay, that visit included, whose marker is known
-- column earlier_marked: of them, marked
-- column later_right: the same at later visits, to which it may have contributed
-- column later_marked: of them, marked
with replays as (
    select
        run,
        any_value(question) as question,
        source,
        arg_min(trajectory, (step, "group", slot)) as opened,
        count(*) as replays,
        min(step) as first_replay,
        max(step) as last_replay
    from trajectories
    where replayed
        and source is not null
        and by_marker($marker, not chain_valid, shortcut, code, repetition)
    group by run, source
),
followed as (
    select
        replays.*,
        coalesce(sum(visits.right_fresh) filter (visits.step <= first_replay), 0)::bigint
            as earlier_right,
        coalesce(sum(visits.marked) filter (visits.step <= first_replay), 0)::bigint
            as earlier_marked,
        coalesce(sum(visits.right_fresh) filter (visits.step > first_replay), 0)::bigint
            as later_right,
        coalesce(sum(visits.marked) filter (visits.step > first_replay), 0)::bigint
            as later_marked
    from replays
    left join marked_visits($marker) as visits using (run, question)
    group by all
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    followed.* exclude (run)
from followed
join scope($study, $run) as runs using (run)
qualify row_number() over (
    partition by run
    order by if($by_later, later_marked, replays) desc, replays desc, source
) <= $most
order by
    runs.study,
    runs.arm,
    runs.seed,
    run,
    if($by_later, followed.later_marked, followed.replays) desc,
    followed.replays desc,
    followed.source
