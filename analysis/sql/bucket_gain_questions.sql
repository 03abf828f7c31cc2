-- purpose: What did each question gain until its next visit, and how much could be learned from it, by the bucket before? Sums, for a bootstrap over seeds and questions
-- grain: a run, how the question was drawn, the bucket it was in before this visit, and a question
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column experiential: drawn from the replay buffer (else an ordinary fresh visit)
-- column bucket: experiential: bucket drawn from; fresh: right answers k at the visit before, K if all were; null at the first visit, or if none was graded then
-- column question: question id
-- column group_size: K, the largest group of the run
-- column visits: visits
-- column signal: of them, visits whose group had right and wrong answers
-- column advantage: sum of |advantage| over what was trained on; null where none was logged
-- column followed: of the visits, those graded, as is a later visit of the question
-- column change: sum over these of the share right at the next visit minus this one [share]
-- column gap: sum over these of the steps to the next visit [step]
-- column before: of the visits, those graded, as is the visit before
-- column naive_change: sum over these of the share right at this visit minus the one before, which set the bucket of fresh ones: it regresses to the mean [share]
with sizes as (
    select run, max(size) as group_size
    from visits
    group by run
),
signals as (
    select run, step, "group", sum(abs(advantage)) as advantage
    from trajectories
    where trained is distinct from false
    group by all
),
-- A group may count fewer than K (ungraded or replayed ones left out): solved is solved all the same.
states as (
    select
        visits.*,
        sizes.group_size,
        lag(
            case
                when size = 0 then null
                when successes = size then sizes.group_size
                else successes
            end
        ) over (partition by run, question order by visit) as bucket_before
    from visits
    join sizes using (run)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    coalesce(states.experiential, false) as experiential,
    coalesce(states.bucket_drawn, states.bucket_before) as bucket,
    states.question,
    any_value(states.group_size) as group_size,
    count(*) as visits,
    count(*) filter (where states.successes between 1 and states.size - 1) as signal,
    sum(signals.advantage) as advantage,
    count(states.next_share - states.success_share) as followed,
    coalesce(sum(states.next_share - states.success_share), 0) as change,
    coalesce(
        sum(states.next_step - states.step)
            filter (where states.next_share - states.success_share is not null),
        0
    )::bigint as gap,
    count(states.success_share - states.previous_share) as before,
    coalesce(sum(states.success_share - states.previous_share), 0) as naive_change
from states
join scope($study, $run) as runs using (run)
left join signals using (run, step, "group")
group by all
order by runs.study, runs.arm, runs.seed, run, experiential, bucket, states.question
