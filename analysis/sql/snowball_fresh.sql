-- purpose: The counts behind the contrast of arms: marked right answers to questions of the fresh stream, whose mix is the same whatever an arm replays
-- grain: a run, a window of training steps and a question with a right fresh answer in it, at visits that were not drawn from the buffer
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param window integer >= 1 = 10: steps a window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column window_start: first step of the window: 1, 11, 21, ... [step]
-- column question: question id
-- column right_fresh: right fresh answers whose marker is known
-- column marked: of them, marked
select
    runs.study,
    runs.arm,
    runs.seed,
    visits.run,
    (visits.step - 1) // $window * $window + 1 as window_start,
    visits.question,
    sum(visits.right_fresh)::bigint as right_fresh,
    sum(visits.marked)::bigint as marked
from marked_visits($marker) as visits
join scope($study, $run) as runs using (run)
where visits.right_fresh > 0 and visits.experiential is not true
group by runs.study, runs.arm, runs.seed, visits.run, window_start, visits.question
order by runs.study, runs.arm, runs.seed, visits.run, window_start, visits.question
