-- purpose: By which formula are replayed tokens weighted?
-- grain: an arm of a study (all its seeds) that replays trajectories with a gradient
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column beta: the setting beta, least over the runs
-- column trajectories: replayed trajectories with a gradient
-- column from_ratio: furthest that a trajectory's least or greatest weight lies from w / (w + beta), w its least or greatest ratio
-- column from_sum: the same from w + beta w
with ends as (
    select
        runs.study,
        runs.arm,
        (runs.settings ->> '$.objective.beta')::double as beta,
        unnest([ratio_min, ratio_max]) as ratio,
        unnest([weight_min, weight_max]) as weight
    from trajectories
    join scope($study, $run) as runs using (run)
    where trajectories.replayed and trajectories.ratio_min is not null
)
select
    study,
    arm,
    min(beta) as beta,
    count(*) // 2 as trajectories,
    max(abs(weight - ratio / (ratio + beta))) as from_ratio,
    max(abs(weight - (ratio + beta * ratio))) as from_sum
from ends
group by study, arm
order by study, arm
