-- purpose: When is a question first solved, how often is it lost again, and is it lost after it retired?
-- grain: a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param solved double = 1.0: a visit with at least this share right solves the question [share]
-- param lost double = 0.5: a later visit with at most this share right has lost it [share]
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column questions: questions with a graded visit: the rest counts these only
-- column solved: questions that a visit solved
-- column first_solve_step: step of the first such visit, median over them [step]
-- column revisited: solved questions with a graded visit after the first that solved them
-- column lost: of them, questions that such a visit lost
-- column lost_share: lost / revisited [share]
-- column lost_at_last: of the revisited, questions that the last graded visit lost
-- column retired: questions that retired
-- column retired_revisited: of them, questions with a graded visit after they first retired
-- column retired_lost: of these, questions that such a visit lost
-- column retired_share: right answers at these visits, mean over the visits [share]
with graded as (
    select run, question, step, visit, success_share
    from visits
    where success_share is not null
),
solves as (
    select run, question, min(visit) as first_visit, min(step) as first_step
    from graded
    where success_share >= $solved
    group by all
),
retirements as (
    select run, question, min(step) as retired_step
    from experience
    where event = 'retired'
    group by all
),
by_question as (
    select
        run,
        question,
        any_value(solves.first_step) as solve_step,
        bool_or(graded.visit > solves.first_visit) as revisited,
        bool_or(graded.visit > solves.first_visit and graded.success_share <= $lost) as lost,
        any_value(solves.first_visit) < max(graded.visit)
            and arg_max(graded.success_share, graded.visit) <= $lost as lost_at_last,
        any_value(retirements.retired_step) is not null as retired,
        count(*) filter (where graded.step > retirements.retired_step) as retired_visits,
        sum(graded.success_share) filter (where graded.step > retirements.retired_step)
            as retired_right,
        bool_or(graded.step > retirements.retired_step and graded.success_share <= $lost)
            as retired_lost
    from graded
    left join solves using (run, question)
    left join retirements using (run, question)
    group by run, question
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    count(*) as questions,
    count(solve_step) as solved,
    median(solve_step) as first_solve_step,
    count(*) filter (where revisited) as revisited,
    count(*) filter (where lost) as lost,
    count(*) filter (where lost) / nullif(count(*) filter (where revisited), 0) as lost_share,
    count(*) filter (where lost_at_last) as lost_at_last,
    count(*) filter (where retired) as retired,
    count(*) filter (where retired_visits > 0) as retired_revisited,
    count(*) filter (where retired_lost) as retired_lost,
    sum(retired_right) / nullif(sum(retired_visits), 0)::double as retired_share
from by_question
join scope($study, $run) as runs using (run)
group by all
order by runs.study, runs.arm, runs.seed, run
