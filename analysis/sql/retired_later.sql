-- purpose: How often are retired questions still right when they are asked again, against questions that have not retired, asked at the same time?
-- grain: a run, steps since retirement in spans, retired or not, and a question; windows in which both kinds were asked
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param span integer >= 1 = 25: steps since retirement that are taken together
-- param window integer >= 1 = 10: steps a window; a retired question's visit is compared with those in its window
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column since: least steps since retirement of the span: 1, 26, 51, ... [step]
-- column retired: the question had retired before the visit; false: it had not, and stands beside those that had
-- column question: question id
-- column visits: graded fresh visits, those not drawn from the buffer
-- column weight: retired: visits; else each visit counts as often as its window has visits of retired questions per visit of others, so that both kinds are asked at the same time
-- column share: sum of the share right at these visits, each times its weight [share]
-- column lost: sum of the weights of those visits at which at most half of the answers were right
with retirements as (
    select run, question, min(step) as retired_step
    from experience
    where event = 'retired'
    group by all
),
asked as (
    select
        visits.run,
        visits.question,
        visits.success_share,
        (visits.step - 1) // $window as place,
        coalesce(visits.step > retirements.retired_step, false) as retired,
        if(
            visits.step > retirements.retired_step,
            (visits.step - retirements.retired_step - 1) // $span * $span + 1,
            null
        ) as since
    from visits
    left join retirements using (run, question)
    where visits.success_share is not null and visits.experiential is not true
),
-- How often a visit of a question that has not retired counts, by window and span.
weights as (
    select
        retired.run,
        retired.place,
        retired.since,
        count(*) / any_value(others.visits) as weight
    from asked as retired
    join (
        select run, place, count(*) as visits
        from asked
        where not retired
        group by all
    ) as others using (run, place)
    where retired.retired
    group by all
),
weighted as (
    select run, since, retired, question, success_share, 1.0::double as weight
    from asked
    semi join weights using (run, place)
    where retired
    union all
    select
        asked.run,
        weights.since,
        false as retired,
        asked.question,
        asked.success_share,
        weights.weight
    from asked
    join weights using (run, place)
    where not asked.retired
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    weighted.since,
    weighted.retired,
    weighted.question,
    count(*) as visits,
    sum(weighted.weight) as weight,
    sum(weighted.weight * weighted.success_share) as share,
    coalesce(sum(weighted.weight) filter (where weighted.success_share <= 0.5), 0) as lost
from weighted
join scope($study, $run) as runs using (run)
group by all
order by
    runs.study,
    runs.arm,
    runs.seed,
    run,
    weighted.since,
    weighted.retired,
    weighted.question
