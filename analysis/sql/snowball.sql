-- purpose: Does replay spread flaws: flawed and shortcut shares among right answers over training
-- grain: a run and a window of 10 training steps
-- param study: the study
-- column arm: arm
-- column seed: seed of the run
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column right_fresh: right fresh answers whose chain could be checked
-- column flawed_share: of those, chain not valid; null if there is none [share]
-- column shortcut_share: of those, answers that show no steps [share]
-- column replayed: replayed trajectories whose chain could be checked
-- column replayed_flawed_share: of those, chain not valid; null if there is none [share]
with checked as (
    select
        runs.arm,
        runs.seed,
        (trajectories.step - 1) // 10 * 10 + 1 as window_start,
        trajectories.replayed,
        trajectories.correct and not trajectories.replayed as right_fresh,
        not trajectories.chain_valid as flawed,
        trajectories.shortcut
    from trajectories
    join runs using (run)
    where runs.study = $study and trajectories.chain_valid is not null
)
select
    arm,
    seed,
    window_start,
    count(*) filter (where right_fresh) as right_fresh,
    avg(flawed::int) filter (where right_fresh) as flawed_share,
    avg(shortcut::int) filter (where right_fresh) as shortcut_share,
    count(*) filter (where replayed) as replayed,
    avg(flawed::int) filter (where replayed) as replayed_flawed_share
from checked
group by all
order by arm, seed, window_start
