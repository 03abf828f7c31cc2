-- purpose: Does replay spread flaws: flawed and shortcut shares among right answers over training
-- grain: a run and a window of training steps
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column right_fresh: right fresh answers whose chain could be checked
-- column flawed_share: of those, chain not valid; null if there is none [share]
-- column shortcut_share: of those where that is known, answers that show no steps [share]
-- column replayed: replayed trajectories whose chain could be checked
-- column replayed_flawed_share: of those, chain not valid; null if there is none [share]
select
    runs.study,
    runs.arm,
    runs.seed,
    (visits.step - 1) // $window * $window + 1 as window_start,
    sum(visits.checked)::bigint as right_fresh,
    (sum(visits.flawed) / nullif(sum(visits.checked), 0))::double as flawed_share,
    (
        sum(visits.shortcut)
        / nullif(sum(visits.checked) filter (where visits.shortcut is not null), 0)
    )::double as shortcut_share,
    sum(visits.replayed_checked)::bigint as replayed,
    (sum(visits.replayed_flawed) / nullif(sum(visits.replayed_checked), 0))::double
        as replayed_flawed_share
from visits
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm, runs.seed, runs.run, window_start
having right_fresh > 0 or replayed > 0
order by runs.study, runs.arm, runs.seed, runs.run, window_start
