-- purpose: How well does a trajectory's entropy tell wrong answers from right ones, within one difficulty?
-- grain: an arm of a study (all its seeds), a count k of K right answers in the group, and a window of steps
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 50: steps a window
-- column study: study
-- column arm: arm
-- column group_size: K
-- column bucket: k, right answers in the group of K
-- column window_start: first step of the window: 1, 51, 101, ... [step]
-- column right_fresh: right fresh trajectories with an entropy
-- column right_mean: mean of their mean token entropies [nat/token]
-- column right_p10: their 10 % quantile, to 0.001 as all quantiles here [nat/token]
-- column right_p50: their median [nat/token]
-- column right_p90: their 90 % quantile [nat/token]
-- column wrong_fresh: wrong fresh trajectories with an entropy
-- column wrong_mean: mean of their mean token entropies [nat/token]
-- column wrong_p10: their 10 % quantile [nat/token]
-- column wrong_p50: their median [nat/token]
-- column wrong_p90: their 90 % quantile [nat/token]
-- column auc: chance that a wrong one has more entropy than a right one, ties half [share]
-- column auc_low: lower end of its 95 % interval (Hanley and McNeil), which takes trajectories as independent [share]
-- column auc_high: upper end of the same [share]
with bins as (
    select
        runs.study,
        runs.arm,
        trajectories.group_size,
        trajectories.group_successes as bucket,
        (trajectories.step - 1) // $window * $window + 1 as window_start,
        floor(trajectories.mean_entropy * 1000)::int as bin,
        count(*) filter (where trajectories.correct) as rights,
        count(*) filter (where not trajectories.correct) as wrongs,
        sum(trajectories.mean_entropy) filter (where trajectories.correct) as right_entropy,
        sum(trajectories.mean_entropy) filter (where not trajectories.correct) as wrong_entropy
    from trajectories
    join scope($study, $run) as runs using (run)
    where not trajectories.replayed
        and trajectories.correct is not null
        and trajectories.mean_entropy is not null
    group by all
),
ordered as (
    select
        *,
        sum(rights) over upwards as rights_so_far,
        sum(wrongs) over upwards as wrongs_so_far,
        sum(rights) over cell as all_rights,
        sum(wrongs) over cell as all_wrongs
    from bins
    window
        cell as (partition by study, arm, group_size, bucket, window_start),
        upwards as (partition by study, arm, group_size, bucket, window_start order by bin)
),
cells as (
    select
        study,
        arm,
        group_size,
        bucket,
        window_start,
        sum(rights)::bigint as right_fresh,
        sum(right_entropy) / nullif(right_fresh, 0) as right_mean,
        min(bin) filter (where rights_so_far >= 0.1 * all_rights and rights > 0) / 1000 as right_p10,
        min(bin) filter (where rights_so_far >= 0.5 * all_rights and rights > 0) / 1000 as right_p50,
        min(bin) filter (where rights_so_far >= 0.9 * all_rights and rights > 0) / 1000 as right_p90,
        sum(wrongs)::bigint as wrong_fresh,
        sum(wrong_entropy) / nullif(wrong_fresh, 0) as wrong_mean,
        min(bin) filter (where wrongs_so_far >= 0.1 * all_wrongs and wrongs > 0) / 1000 as wrong_p10,
        min(bin) filter (where wrongs_so_far >= 0.5 * all_wrongs and wrongs > 0) / 1000 as wrong_p50,
        min(bin) filter (where wrongs_so_far >= 0.9 * all_wrongs and wrongs > 0) / 1000 as wrong_p90,
        (sum(wrongs * (rights_so_far - rights / 2)) / nullif(right_fresh * wrong_fresh, 0))::double
            as auc
    from ordered
    group by all
),
judged as (
    select
        *,
        sqrt(
            (
                auc * (1 - auc)
                + (wrong_fresh - 1) * (auc / (2 - auc) - auc ** 2)
                + (right_fresh - 1) * (2 * auc ** 2 / (1 + auc) - auc ** 2)
            )
            / nullif(right_fresh * wrong_fresh, 0)
        ) as error
    from cells
)
select
    * exclude (error),
    case when auc is not null then greatest(auc - 1.96 * error, 0) end as auc_low,
    case when auc is not null then least(auc + 1.96 * error, 1) end as auc_high
from judged
order by study, arm, group_size, bucket, window_start
