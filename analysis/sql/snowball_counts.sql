-- purpose: How many right answers and replays of a run have the marker?
-- grain: a run with a visit
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column right_fresh: right fresh answers whose marker is known
-- column marked: of them, marked
-- column replayed: replayed trajectories whose marker is known
-- column replayed_marked: of them, marked
select
    runs.study,
    runs.arm,
    runs.seed,
    runs.run,
    sum(visits.right_fresh)::bigint as right_fresh,
    coalesce(sum(visits.marked), 0)::bigint as marked,
    sum(visits.replayed_known)::bigint as replayed,
    coalesce(sum(visits.replayed_marked), 0)::bigint as replayed_marked
from marked_visits($marker) as visits
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, runs.run
order by runs.study, runs.arm, runs.seed, runs.run
