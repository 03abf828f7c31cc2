-- purpose: The counts behind the snowball test: right fresh answers and flawed ones, by question
-- grain: a run, a window of training steps and a question with a right fresh answer in it
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column question: question id
-- column right_fresh: right fresh answers whose chain could be checked
-- column flawed: of those, chain not valid
select
    runs.study,
    runs.arm,
    runs.seed,
    (visits.step - 1) // $window * $window + 1 as window_start,
    visits.question,
    sum(visits.checked)::bigint as right_fresh,
    sum(visits.flawed)::bigint as flawed
from visits
join scope($study, $run) as runs using (run)
where visits.checked > 0
group by runs.study, runs.arm, runs.seed, runs.run, window_start, visits.question
order by runs.study, runs.arm, runs.seed, runs.run, window_start, visits.question
