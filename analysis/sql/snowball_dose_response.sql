-- purpose: The more marked trajectories of a question were replayed, the more marked new right answers to it? Observed, not caused: see `snowball_event_study`
-- grain: a run and a dose
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param lag integer >= 1 = 1: visits of the question between a replay and the answers it may have changed
-- param most integer >= 1 = 5: this dose and all above are taken together
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column dose: marked trajectories of the question replayed until `lag` visits before
-- column questions: questions that came to this dose
-- column visits: their visits at this dose
-- column right_fresh: right fresh answers at these visits whose marker is known
-- column marked: of them, marked
-- column marked_share: marked / right_fresh [share]
-- column compared: of the visits, those `lag` visits after the replay that brought the question to this dose, with such answers at both; 0 at dose 0
-- column change: mean over these of the marked share minus that at the visit of the replay: what the last dose changed, and a trend of the run with it [share]
with dosed as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        visits.*,
        visits.marked / nullif(visits.right_fresh, 0) as share,
        least(coalesce(sum(visits.replayed_marked) over earlier, 0), $most)::bigint as dose,
        lag(visits.replayed_marked > 0, $lag) over in_order as came,
        -- Answers before the replay were its candidates: it is marked for they were. At its visit
        -- they were sampled when it was chosen already.
        lag(visits.marked / nullif(visits.right_fresh, 0), $lag) over in_order as share_at_replay
    from marked_visits($marker) as visits
    join scope($study, $run) as runs using (run)
    window
        in_order as (partition by run, visits.question order by visits.visit),
        earlier as (in_order rows between unbounded preceding and $lag preceding)
)
select
    study,
    arm,
    seed,
    run,
    dose,
    count(distinct question) as questions,
    count(*) as visits,
    sum(right_fresh)::bigint as right_fresh,
    coalesce(sum(marked), 0)::bigint as marked,
    (sum(marked) / nullif(sum(right_fresh), 0))::double as marked_share,
    count(share - share_at_replay) filter (where came) as compared,
    avg(share - share_at_replay) filter (where came) as change
from dosed
group by study, arm, seed, run, dose
order by study, arm, seed, run, dose
