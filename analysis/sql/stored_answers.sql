-- purpose: Which answers does the replay buffer store: right ones, wrong ones?
-- grain: an arm of a study (all its seeds) that stores trajectories
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column sampled: graded fresh trajectories since the run's first was stored
-- column sampled_wrong: of them, wrong
-- column stored: trajectories stored whose grade is in the log
-- column stored_wrong: of them, wrong
with stored as (
    select run, trajectory, min(step) as step
    from experience
    where event = 'stored'
    group by run, trajectory
),
begun as (
    select run, min(step) as step
    from stored
    group by run
)
select
    runs.study,
    runs.arm,
    count(*) as sampled,
    count(*) filter (where not trajectories.correct) as sampled_wrong,
    count(stored.trajectory) as stored,
    count(stored.trajectory) filter (where not trajectories.correct) as stored_wrong
from trajectories
join scope($study, $run) as runs using (run)
join begun on begun.run = runs.run and trajectories.step >= begun.step
left join stored
    on stored.run = trajectories.run and stored.trajectory = trajectories.trajectory
where not trajectories.replayed and trajectories.correct is not null
group by runs.study, runs.arm
order by runs.study, runs.arm
