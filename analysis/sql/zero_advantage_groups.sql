-- purpose: How many groups teach nothing, for every trajectory trained on has advantage zero?
-- grain: an arm of a study, a window of steps, how the question was drawn, and the bucket it was in before
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 50: steps a window
-- column study: study
-- column arm: arm
-- column window_start: first step of the window: 1, 51, 101, ... [step]
-- column experiential: drawn from the replay buffer
-- column bucket: experiential: bucket drawn from; fresh: right answers k at the visit before; null at the first
-- column groups: groups whose advantages are known
-- column zero: of them, groups without a non-zero advantage
-- column zero_share: zero / groups [share]
-- column solved: of the zero ones, those whose fresh rollouts were all right
-- column failed: of the zero ones, those whose fresh rollouts were all wrong
with signals as (
    select run, step, "group", bool_or(advantage <> 0) as signal
    from trajectories
    where trained is distinct from false
    group by all
)
select
    runs.study,
    runs.arm,
    (visits.step - 1) // $window * $window + 1 as window_start,
    visits.experiential,
    coalesce(visits.bucket_drawn, visits.previous_successes) as bucket,
    count(*) as groups,
    count(*) filter (where not signals.signal) as zero,
    zero / groups as zero_share,
    count(*) filter (where not signals.signal and visits."right" = visits.graded) as solved,
    count(*) filter (where not signals.signal and visits."right" = 0) as failed
from visits
join signals using (run, step, "group")
join scope($study, $run) as runs using (run)
where signals.signal is not null
group by all
order by runs.study, runs.arm, window_start, visits.experiential, bucket
