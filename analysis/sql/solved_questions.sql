-- purpose: Which questions were solved, and how right were they at later visits?
-- grain: a run and a question of which a visit had all fresh answers right
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column solved_step: step of the first visit that solved it [step]
-- column later: graded visits after it
-- column later_failed: of these, with nothing right
-- column last_share: share right at the last of them; null if there is none [share]
with graded as (
    select run, question, step, visit, success_share
    from visits
    where success_share is not null
),
solves as (
    select run, question, min(visit) as first_visit, min(step) as solved_step
    from graded
    where success_share = 1
    group by all
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    solves.question,
    any_value(solves.solved_step) as solved_step,
    count(graded.visit) as later,
    count(*) filter (where graded.success_share = 0) as later_failed,
    arg_max(graded.success_share, graded.visit) as last_share
from solves
join scope($study, $run) as runs using (run)
left join graded
    on graded.run = solves.run
    and graded.question = solves.question
    and graded.visit > solves.first_visit
group by runs.study, runs.arm, runs.seed, run, solves.question
order by runs.study, runs.arm, runs.seed, run, solves.question
