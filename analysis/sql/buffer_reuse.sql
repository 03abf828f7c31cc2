-- purpose: How often is one stored trajectory replayed?
-- grain: a run, and a number of replays that a trajectory of it has
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column times: replays of the trajectory; 0: stored, never replayed
-- column trajectories: trajectories with so many
with counts as (
    select
        run,
        trajectory,
        count(*) filter (event = 'replayed') as times
    from experience
    where event in ('stored', 'replayed') and trajectory is not null
    group by run, trajectory
)
select runs.study, runs.arm, runs.seed, run, counts.times, count(*) as trajectories
from counts
join scope($study, $run) as runs using (run)
group by all
order by runs.study, runs.arm, runs.seed, run, counts.times
