-- purpose: Which questions does a study hold, and how did each fare over its visits and its tests?
-- grain: a question of a study, trained on or tested
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column question: question id
-- column level: difficulty known beforehand
-- column text: the question as asked; null where the log does not hold it
-- column gold: the right answer
-- column runs: runs that trained on it
-- column visits: groups of it, over all runs
-- column graded: its graded fresh rollouts [trajectory]
-- column right: of them, graded right [trajectory]
-- column first_share: share right at the first visit, mean over the runs [share]
-- column last_share: share right at the last visit, mean over the runs; the first, if it is the only one [share]
-- column flips: visits whose share right is above 1/2 where it was below before, or the reverse; visits at 1/2 and ungraded ones are passed over
-- column replays: replayed trajectories
-- column retired: runs in which it retired
-- column benchmarks: the benchmarks that ask it, with commas; null: none
-- column samples: its graded benchmark samples
-- column accuracy: of them, right [share]
with chosen as (from scope($study, $run)),
retirements as (
    select run, question
    from experience
    where event = 'retired'
    group by all
),
sides as (
    select
        chosen.study,
        visits.question,
        visits.success_share > 0.5 as above,
        lag(visits.success_share > 0.5)
            over (partition by run, visits.question order by visits.visit) as above_before
    from visits
    join chosen using (run)
    where visits.success_share <> 0.5
),
crossings as (
    select study, question, count(*) as flips
    from sides
    where above <> above_before
    group by all
),
trained as (
    select
        chosen.study,
        visits.question,
        any_value(visits.level) as level,
        count(distinct run) as runs,
        count(*) as visits,
        sum(visits.graded)::bigint as graded,
        sum(visits."right")::bigint as "right",
        avg(visits.success_share) filter (where visits.visit = 1) as first_share,
        avg(visits.success_share) filter (where visits.next_step is null) as last_share,
        sum(visits.replayed)::bigint as replays,
        count(distinct retirements.run) as retired
    from visits
    join chosen using (run)
    left join retirements using (run, question)
    where visits.question is not null
    group by all
),
tested as (
    select
        chosen.study,
        evaluations.question,
        any_value(evaluations.level) as level,
        string_agg(distinct evaluations.benchmark, ', ' order by evaluations.benchmark)
            as benchmarks,
        count(evaluations.correct) as samples,
        avg(evaluations.correct::int) as accuracy
    from evaluations
    join chosen using (run)
    where evaluations.question is not null
    group by all
),
texts as (
    -- One question may be in several splits: its text is the same.
    select question, min(level) as level, min(text) as text, min(gold) as gold
    from questions
    group by question
)
select
    study,
    question,
    coalesce(texts.level, trained.level, tested.level) as level,
    texts.text,
    texts.gold,
    coalesce(trained.runs, 0) as runs,
    coalesce(trained.visits, 0) as visits,
    coalesce(trained.graded, 0) as graded,
    coalesce(trained."right", 0) as "right",
    trained.first_share,
    trained.last_share,
    coalesce(crossings.flips, 0) as flips,
    coalesce(trained.replays, 0) as replays,
    coalesce(trained.retired, 0) as retired,
    tested.benchmarks,
    coalesce(tested.samples, 0) as samples,
    tested.accuracy
from trained
full join tested using (study, question)
left join crossings using (study, question)
left join texts using (question)
order by study, question
