-- purpose: How does the share right change from a visit to the next, by the bucket before it? Observed, not caused: questions are not assigned to buckets
-- grain: an arm of a study, how the question was drawn, and the bucket it was in before this visit
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column experiential: drawn from the replay buffer (else an ordinary fresh visit)
-- column bucket: experiential: bucket drawn from; fresh: bucket after the visit before
-- column groups: visits
-- column success_share: right answers of the fresh rollouts at this visit [share]
-- column signal_share: visits whose group had right and wrong answers [share]
-- column next_visits: of these visits, those that a later visit of the question follows
-- column change_next: success share at the next visit minus this one; retired ones have no next [share]
select
    runs.study,
    runs.arm,
    visits.experiential,
    coalesce(visits.bucket_drawn, visits.previous_bucket) as bucket,
    count(*) as groups,
    avg(visits.success_share) as success_share,
    avg((visits.successes between 1 and visits.size - 1)::int) as signal_share,
    count(visits.next_share - visits.success_share) as next_visits,
    avg(visits.next_share - visits.success_share) as change_next
from visits
join scope($study, $run) as runs using (run)
where coalesce(visits.bucket_drawn, visits.previous_bucket) is not null
group by all
order by runs.study, runs.arm, visits.experiential, bucket
