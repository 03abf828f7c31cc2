-- purpose: When was each question first stored, drawn and replayed: the counts behind every measure of concentration
-- grain: a run, a window of steps, and a question that was first stored, drawn, or replayed in it
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column question: question id
-- column first_stored: whether a trajectory of it was stored here for the first time
-- column draws: visits of the question drawn from the buffer
-- column replays: replayed trajectories of it
with uses as (
    select
        run,
        (step - 1) // $window * $window + 1 as first_step,
        question,
        false as first_stored,
        (experiential is true)::int as draws,
        replayed as replays
    from visits
    where experiential or replayed > 0
    union all
    select run, (min(step) - 1) // $window * $window + 1, question, true, 0, 0
    from experience
    where event = 'stored'
    group by run, question
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    uses.first_step,
    uses.question,
    bool_or(uses.first_stored) as first_stored,
    sum(uses.draws)::bigint as draws,
    sum(uses.replays)::bigint as replays
from uses
join scope($study, $run) as runs using (run)
group by all
order by runs.study, runs.arm, runs.seed, run, uses.first_step, uses.question
