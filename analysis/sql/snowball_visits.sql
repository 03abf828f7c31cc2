-- purpose: Visit by visit, what was replayed of a question, what its right answers had been like before, and what those of this visit are like
-- grain: a run, a question and a visit, from the visit of its first replay on
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column visit: which visit of the question in its run this is, from 1
-- column step: training step [step]
-- column bucket: bucket that the question was drawn from; null if it was not, or if none is known
-- column replayed: trajectories replayed at this visit whose marker is known
-- column replayed_marked: of them, marked
-- column earlier_right: right fresh answers at all visits before whose marker is known: the replay was chosen among such
-- column earlier_marked: of them, marked
-- column right_fresh: right fresh answers at this visit whose marker is known: sampled when the replay was chosen already, before it was trained on
-- column marked: of them, marked
with counted as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        visits.run,
        visits.question,
        visits.visit,
        visits.step,
        visits.bucket_drawn as bucket,
        visits.replayed_known as replayed,
        coalesce(visits.replayed_marked, 0) as replayed_marked,
        coalesce(sum(visits.right_fresh) over before, 0)::bigint as earlier_right,
        coalesce(sum(visits.marked) over before, 0)::bigint as earlier_marked,
        visits.right_fresh,
        coalesce(visits.marked, 0) as marked,
        min(visits.visit) filter (where visits.replayed > 0)
            over (partition by visits.run, visits.question) as first_replay
    from marked_visits($marker) as visits
    join scope($study, $run) as runs using (run)
    window before as (
        partition by visits.run, visits.question order by visits.visit
        rows between unbounded preceding and 1 preceding
    )
)
select * exclude (first_replay)
from counted
where visit >= first_replay
order by study, arm, seed, run, question, visit
