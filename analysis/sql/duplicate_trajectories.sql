-- purpose: How often does the policy say the same again to the same question in one step?
-- grain: an arm of a study and a window of steps
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column first_step: first step of the window [step]
-- column groups: groups with two fresh rollouts or more whose texts are known
-- column fresh: their fresh rollouts [trajectory]
-- column duplicate_share: of these, exact copies of an earlier one of the group [share]
-- column near_duplicate_share: the same, case and white space aside [share]
-- column distinct_responses: distinct responses a group, case and white space aside, mean
-- column diversity: distinct - 1 of fresh - 1, case and white space aside, mean over groups: 0 all alike, 1 all different [share]
-- column uniform_share: groups whose fresh responses are all alike, case and white space aside [share]
select
    runs.study,
    runs.arm,
    (visits.step - 1) // $window * $window + 1 as first_step,
    count(*) as groups,
    sum(visits.fresh)::bigint as fresh,
    1 - sum(visits."distinct") / sum(visits.fresh) as duplicate_share,
    1 - sum(visits.distinct_plain) / sum(visits.fresh) as near_duplicate_share,
    avg(visits.distinct_plain) as distinct_responses,
    avg((visits.distinct_plain - 1) / (visits.fresh - 1)) as diversity,
    avg((visits.distinct_plain = 1)::int) as uniform_share
from visits
join scope($study, $run) as runs using (run)
where visits.fresh > 1 and visits.distinct_plain is not null
group by all
order by runs.study, runs.arm, first_step
