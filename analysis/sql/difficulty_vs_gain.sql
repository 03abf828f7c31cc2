-- purpose: How does the share right change from a visit to the next, by the bucket before it? Observed, not caused: questions are not assigned to buckets
-- grain: an arm, how the question was drawn, and the bucket it was in before this visit
-- param study: the study
-- column arm: arm
-- column experiential: drawn from the replay buffer (else an ordinary fresh visit)
-- column bucket: experiential: bucket drawn from; fresh: right answers k at the visit before
-- column groups: visits
-- column success_share: right answers of the fresh rollouts at this visit [share]
-- column signal_share: visits whose group had right and wrong answers [share]
-- column next_visits: of these visits, those that a later visit of the question follows
-- column change_next: success share at the next visit minus this one; retired ones have no next [share]
with visits as (
    select
        runs.arm,
        trajectories.run,
        trajectories.step,
        trajectories."group",
        trajectories.question,
        any_value(trajectories.experiential) as experiential,
        any_value(trajectories.bucket_drawn) as bucket_drawn,
        any_value(trajectories.group_successes) as successes,
        any_value(trajectories.group_size) as size,
        count(*) filter (where trajectories.correct and not trajectories.replayed)
            / nullif(count(trajectories.correct) filter (not trajectories.replayed), 0)
            as success_share
    from trajectories
    join runs using (run)
    where runs.study = $study
    group by all
),
ordered as (
    select
        *,
        coalesce(bucket_drawn, lag(successes) over question_order) as bucket,
        lead(success_share) over question_order - success_share as change_next
    from visits
    window question_order as (partition by run, question order by step, "group")
)
select
    arm,
    experiential,
    bucket,
    count(*) as groups,
    avg(success_share) as success_share,
    count(*) filter (where successes between 1 and size - 1) / count(*) as signal_share,
    count(change_next) as next_visits,
    avg(change_next) as change_next
from ordered
where bucket between 1 and size - 1
group by all
order by arm, experiential, bucket
