-- purpose: Do a question's new right answers turn marked after its first replay is marked, against first replays unmarked? Observed, not caused: matched by arm and bucket only, not by step or seed
-- grain: an arm of a study (all its seeds), the bucket at the first replay, and a visit counted from it. Visit 0 is the placebo: sampled when the replay was chosen already, before it was trained on. Visits before are none: the choice was among their answers. Later replays count on both sides
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param reach integer >= 1 = 3: visits before and after the first replay
-- column study: study
-- column arm: arm
-- column bucket: bucket that the question was drawn from at its first replay; null if none
-- column relative: visit of the question, 0 at its first replay
-- column treated: questions visited then whose first replay was marked
-- column treated_right: their right fresh answers whose marker is known, the replayed one left out
-- column treated_share: of them, marked [share]
-- column control: questions visited then whose first replay was known to be unmarked
-- column control_right: their right fresh answers, as above
-- column control_share: of them, marked [share]
-- column gap: treated_share minus control_share [share]
-- column effect: gap minus the gap at visit 0: difference in differences; null before visit 0 [share]
with marked as (
    select
        runs.study,
        runs.arm,
        visits.*
    from marked_visits($marker) as visits
    join scope($study, $run) as runs using (run)
),
first_replays as (
    select * from marked where replayed > 0
    qualify visit = min(visit) over (partition by run, question)
),
events as (
    select study, arm, run, question, visit, step, "group", bucket_drawn as bucket,
        replayed_marked > 0 as treated
    from first_replays
    where replayed_marked > 0 or replayed_known = replayed
),
replays as (
    -- What each event replayed, found again where it was sampled.
    select events.run, born.step, born."group", born.correct,
        by_marker($marker, not born.chain_valid, born.shortcut, born.code, born.repetition)
            as marked
    from events
    join trajectories as replay using (run, step, "group")
    join trajectories as born on born.trajectory = replay.source and born.run = events.run
    where replay.replayed
),
left_out as (
    select run, step, "group", count(marked) as known, count(*) filter (where marked) as marked
    from replays
    where correct
    group by all
),
counted as (
    select
        events.study,
        events.arm,
        events.bucket,
        visits.visit - events.visit as relative,
        count(*) filter (where treated) as treated,
        sum(visits.right_fresh - coalesce(left_out.known, 0)) filter (where treated)
            as treated_right,
        sum(visits.marked - coalesce(left_out.marked, 0)) filter (where treated)
            as treated_marked,
        count(*) filter (where not treated) as control,
        sum(visits.right_fresh - coalesce(left_out.known, 0)) filter (where not treated)
            as control_right,
        sum(visits.marked - coalesce(left_out.marked, 0)) filter (where not treated)
            as control_marked
    from events
    join marked as visits using (run, question)
    left join left_out
        on left_out.run = visits.run
        and left_out.step = visits.step
        and left_out."group" = visits."group"
    where relative between -$reach and $reach
    group by all
),
shares as (
    select
        *,
        (treated_marked / nullif(treated_right, 0))::double as treated_share,
        (control_marked / nullif(control_right, 0))::double as control_share,
        treated_share - control_share as gap
    from counted
)
select
    study,
    arm,
    bucket,
    relative,
    treated,
    coalesce(treated_right, 0)::bigint as treated_right,
    treated_share,
    control,
    coalesce(control_right, 0)::bigint as control_right,
    control_share,
    gap,
    case when relative >= 0 then
        gap - max(gap) filter (where relative = 0) over (partition by study, arm, bucket)
    end as effect
from shares
order by study, arm, bucket, relative
