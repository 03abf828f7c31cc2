-- purpose: The more marked trajectories of a question were replayed, the more marked new right answers to it? Observed, not caused: see `snowball_event_study`
-- grain: a run and a dose
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param marker text = flawed: flawed, shortcut, code or repetition
-- param lag integer = 1: visits of the question between a replay and the answers it may have changed
-- param most integer = 5: this dose and all above are taken together
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
-- column compared: visits with such answers, to questions with such answers at dose 0; 0 at dose 0
-- column change: mean over these of the marked share minus the question's own at dose 0 [share]
with marked_visits as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        run,
        visits.question,
        visits.visit,
        case when $marker in ('flawed', 'shortcut') then visits.checked else visits."right" end
            as right_fresh,
        case $marker
            when 'flawed' then visits.flawed
            when 'shortcut' then visits.shortcut
            when 'code' then visits.code
            when 'repetition' then visits.repetition
            else error('marker is flawed, shortcut, code or repetition, not ' || $marker)
        end as marked,
        case $marker
            when 'flawed' then visits.replayed_flawed
            when 'shortcut' then visits.replayed_shortcut
            when 'code' then visits.replayed_code
            when 'repetition' then visits.replayed_repetition
        end as replayed_marked
    from visits
    join scope($study, $run) as runs using (run)
),
dosed as (
    select
        *,
        least(coalesce(sum(replayed_marked) over earlier, 0), $most)::bigint as dose
    from marked_visits
    window earlier as (
        partition by run, question
        order by visit
        rows between unbounded preceding and $lag preceding
    )
),
before as (
    select run, question, sum(marked) / nullif(sum(right_fresh), 0) as share
    from dosed
    where dose = 0
    group by all
)
select
    dosed.study,
    dosed.arm,
    dosed.seed,
    dosed.run,
    dosed.dose,
    count(distinct dosed.question) as questions,
    count(*) as visits,
    sum(dosed.right_fresh)::bigint as right_fresh,
    sum(dosed.marked)::bigint as marked,
    (sum(dosed.marked) / nullif(sum(dosed.right_fresh), 0))::double as marked_share,
    count(before.share) filter (where dosed.dose > 0 and dosed.right_fresh > 0) as compared,
    avg(dosed.marked / nullif(dosed.right_fresh, 0) - before.share) filter (where dosed.dose > 0)
        as change
from dosed
left join before using (run, question)
group by dosed.study, dosed.arm, dosed.seed, dosed.run, dosed.dose
order by dosed.study, dosed.arm, dosed.seed, dosed.run, dosed.dose
