-- purpose: How many fresh rollouts of each training question were right, in a window of steps?
-- grain: a run and a question that it visited in the window
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param step_min integer >= 0 = null: first step of the window; the run's first if null
-- param step_max integer >= 0 = null: last step of the window; the run's last if null
-- column study: study
-- column arm: arm
-- column seed: seed; null for an import
-- column run: run id
-- column question: question id
-- column level: the question's level
-- column visits: groups of the question
-- column graded: graded fresh rollouts
-- column correct: right ones
select
    runs.study,
    runs.arm,
    runs.seed,
    visits.run,
    visits.question,
    max(visits.level) as level,
    count(*) as visits,
    sum(visits.graded)::bigint as graded,
    sum(visits."right")::bigint as correct
from visits
join scope($study, $run) as runs using (run)
where visits.step >= coalesce($step_min, visits.step)
    and visits.step <= coalesce($step_max, visits.step)
group by runs.study, runs.arm, runs.seed, visits.run, visits.question
order by runs.study, runs.arm, runs.seed, visits.run, visits.question
