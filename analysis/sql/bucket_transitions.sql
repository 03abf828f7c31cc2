-- purpose: From which bucket to which does a question move between two visits?
-- grain: an arm of a study, a group size, a window of steps, and a pair of buckets that occurs
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window, by the later of the two visits
-- column study: study
-- column arm: arm
-- column group_size: K, the largest group of the run
-- column first_step: first step of the window [step]
-- column before: bucket after the visit before; 0 = failed, K = solved
-- column after: bucket after this visit, in the same way
-- column transitions: visits that moved so
-- column share: of all transitions from the bucket before: a row of the Markov matrix [share]
-- column gap: steps between the two visits, mean [step]
with sizes as (
    select run, max(size) as group_size
    from visits
    group by run
),
-- A group may count fewer than K (ungraded or replayed ones left out): solved is solved all the same.
states as (
    select
        runs.study,
        runs.arm,
        sizes.group_size,
        visits.run,
        visits.step,
        visits.question,
        visits.visit,
        case visits.successes when visits.size then sizes.group_size else visits.successes end
            as bucket
    from visits
    join scope($study, $run) as runs using (run)
    join sizes using (run)
    where visits.size > 0
),
counts as (
    select
        later.study,
        later.arm,
        later.group_size,
        (later.step - 1) // $window * $window + 1 as first_step,
        earlier.bucket as before,
        later.bucket as after,
        count(*) as transitions,
        avg(later.step - earlier.step) as gap
    from states as later
    join states as earlier
        on earlier.run = later.run
        and earlier.question = later.question
        and earlier.visit = later.visit - 1
    group by all
)
select
    study,
    arm,
    group_size,
    first_step,
    before,
    after,
    transitions,
    transitions / sum(transitions) over (partition by study, arm, group_size, first_step, before)
        as share,
    gap
from counts
order by study, arm, group_size, first_step, before, after
