-- purpose: What happens in the replay buffer as training goes on?
-- grain: a run, a window of steps, and a kind of event that occurs in it
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column first_step: first step of the window: 1, 11, 21, ... [step]
-- column event: entered, moved, stored, replayed, retired, returned, left or evicted
-- column events: how many
-- column questions: of how many questions
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    (experience.step - 1) // $window * $window + 1 as first_step,
    experience.event,
    count(*) as events,
    count(distinct experience.question) as questions
from experience
join scope($study, $run) as runs using (run)
group by all
order by all
