-- purpose: How are the entropies of right answers distributed, by the difficulty of their question?
-- grain: an arm of a study (all its seeds and steps) and a difficulty
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column difficulty: hard (k/K <= 1/4), medium, easy (k/K >= 3/4); k right answers in the group of K
-- column right_fresh: right fresh trajectories of groups with signal whose entropy is known
-- column questions: how many questions they answer
-- column mean_entropy: mean of their mean token entropies [nat/token]
-- column p05: their 5 % quantile [nat/token]
-- column p25: their 25 % quantile [nat/token]
-- column p50: their median [nat/token]
-- column p75: their 75 % quantile [nat/token]
-- column p95: their 95 % quantile [nat/token]
with cells as (
    select
        runs.study,
        runs.arm,
        trajectories.difficulty,
        count(*) as right_fresh,
        count(distinct trajectories.question) as questions,
        avg(trajectories.mean_entropy) as mean_entropy,
        quantile_cont(trajectories.mean_entropy, [0.05, 0.25, 0.5, 0.75, 0.95]) as quantiles
    from trajectories
    join scope($study, $run) as runs using (run)
    where trajectories.correct
        and not trajectories.replayed
        and trajectories.difficulty is not null
        and trajectories.mean_entropy is not null
    group by all
)
select
    * exclude (quantiles),
    quantiles[1] as p05,
    quantiles[2] as p25,
    quantiles[3] as p50,
    quantiles[4] as p75,
    quantiles[5] as p95
from cells
order by study, arm, difficulty
