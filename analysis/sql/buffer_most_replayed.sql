-- purpose: Which stored trajectories were replayed most?
-- grain: a run and a trajectory that it replayed, the most replayed first
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param most integer >= 1 = 200: most rows of a run
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column source: the trajectory as first sampled
-- column birth_step: the step (of its own run) whose policy sampled it [step]
-- column replays: how often it was replayed
-- column first_replay: step of the first replay [step]
-- column last_replay: step of the last one [step]
-- column chain_valid: its chain is valid; null if unknown
-- column opened: a trajectory of the catalog to open: the last replay
with counted as (
    select
        run,
        any_value(question) as question,
        source,
        any_value(birth_step) as birth_step,
        count(*) as replays,
        min(step) as first_replay,
        max(step) as last_replay,
        bool_and(chain_valid) as chain_valid,
        arg_max(trajectory, (step, "group", slot)) as opened
    from trajectories
    where replayed and source is not null
    group by run, source
    qualify row_number() over (partition by run order by replays desc, source) <= $most
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    counted.* exclude (run)
from counted
join scope($study, $run) as runs using (run)
order by runs.study, runs.arm, runs.seed, run, counted.replays desc, counted.source
