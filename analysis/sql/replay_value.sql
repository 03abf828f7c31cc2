-- purpose: How does the share right change after a visit with a replay, against visits without one in the same run, bucket and window of steps? Observed, not caused
-- grain: an arm of a study and the bucket before the visit
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param horizon integer >= 1 = 3: later visits of the question that count
-- param window integer >= 1 = 20: steps a window in which visits are matched
-- column study: study
-- column arm: arm
-- column bucket: experiential: bucket drawn from; fresh: bucket after the visit before
-- column replays: visits with a replayed trajectory that a later visit of the question follows
-- column change_replayed: mean share right at the next `horizon` visits minus this one, mean over these visits [share]
-- column plain: visits without one that a later visit of the question follows
-- column change_plain: the same change, mean over these visits [share]
-- column matched: visits with a replay that have one without in the same run, bucket and window
-- column difference: change after them minus that of their matches, mean over the matched [share]
with changes as (
    select
        runs.study,
        runs.arm,
        run,
        coalesce(visits.bucket_drawn, visits.previous_bucket) as bucket,
        (visits.step - 1) // $window as place,
        visits.replayed > 0 as replayed,
        avg(visits.success_share) over later - visits.success_share as change
    from visits
    join scope($study, $run) as runs using (run)
    window later as (
        partition by run, visits.question
        order by visits.visit
        rows between 1 following and $horizon following
    )
),
cells as (
    select
        study,
        arm,
        run,
        bucket,
        place,
        count(*) filter (where replayed) as replays,
        sum(change) filter (where replayed) as sum_replayed,
        count(*) filter (where not replayed) as plain,
        sum(change) filter (where not replayed) as sum_plain
    from changes
    where change is not null and bucket is not null
    group by all
)
select
    study,
    arm,
    bucket,
    sum(replays)::bigint as replays,
    sum(sum_replayed) / nullif(sum(replays), 0) as change_replayed,
    sum(plain)::bigint as plain,
    sum(sum_plain) / nullif(sum(plain), 0) as change_plain,
    coalesce(sum(replays) filter (where plain > 0), 0)::bigint as matched,
    sum(sum_replayed - replays * sum_plain / plain) filter (where replays > 0 and plain > 0)
        / nullif(matched, 0) as difference
from cells
group by all
order by study, arm, bucket
