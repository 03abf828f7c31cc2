-- purpose: The counts behind the snowball test: right fresh answers and flawed ones, by question
-- grain: a run, a window of 10 training steps and a question with a right fresh answer in it
-- param study: the study
-- column arm: arm
-- column seed: seed of the run
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column question: question id
-- column right_fresh: right fresh answers whose chain could be checked
-- column flawed: of those, chain not valid
select
    runs.arm,
    runs.seed,
    (trajectories.step - 1) // 10 * 10 + 1 as window_start,
    trajectories.question,
    count(*) as right_fresh,
    count(*) filter (where not trajectories.chain_valid) as flawed
from trajectories
join runs using (run)
where runs.study = $study
    and trajectories.correct
    and not trajectories.replayed
    and trajectories.chain_valid is not null
group by all
order by runs.arm, runs.seed, window_start, trajectories.question
