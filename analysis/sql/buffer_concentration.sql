-- purpose: Does replay come back to few questions again and again?
-- grain: a run that replays, and what is counted: draws of a question, or its replayed trajectories
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column counted: draw (a visit of a question drawn from the buffer) or replay (a replayed trajectory)
-- column total: draws or replays
-- column available: questions of which a trajectory was ever stored; at least those drawn
-- column distinct_questions: of these, drawn or replayed once or more
-- column gini: Gini coefficient over the available questions: 0 all alike, 1 all on one
-- column top_share: of the total, what the most used 1 % of the available questions take, one at least [share]
-- column effective_questions: equally used questions that would be as concentrated: total squared / sum of squares
with uses as (
    select visits.run, 'draw' as counted, visits.question, count(*) as uses
    from visits
    where visits.experiential
    group by all
    union all
    select visits.run, 'replay' as counted, visits.question, sum(visits.replayed) as uses
    from visits
    where visits.replayed > 0
    group by all
),
stored as (
    select run, count(distinct question) as questions
    from experience
    where event = 'stored'
    group by run
),
-- Place 1 is the most used question; available ones that were never used lie behind the last.
places as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        uses.run,
        uses.counted,
        uses.uses,
        row_number() over (of_run order by uses.uses desc) as place,
        greatest(coalesce(stored.questions, 0), count(*) over of_run) as available
    from uses
    join scope($study, $run) as runs using (run)
    left join stored using (run)
    window of_run as (partition by uses.run, uses.counted)
)
select
    study,
    arm,
    seed,
    run,
    counted,
    sum(uses)::bigint as total,
    max(available) as available,
    count(*) as distinct_questions,
    (max(available) + 1 - 2 * sum(place * uses) / sum(uses)) / max(available) as gini,
    sum(uses) filter (where place <= ceil(available / 100)) / sum(uses) as top_share,
    sum(uses) * sum(uses) / sum(uses * uses) as effective_questions
from places
group by all
order by study, arm, seed, run, counted
