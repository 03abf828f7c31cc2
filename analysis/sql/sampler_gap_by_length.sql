-- purpose: How far apart are trainer and sampler over whole responses, by their length?
-- grain: an arm of a study (all its seeds) and a length of fresh trajectories, in bands that double: 1, 2-3, 4-7, ...
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param cap double = 2.0: a sequence ratio above it counts in `above_cap_share`
-- column study: study
-- column arm: arm
-- column length_from: least length in the band [token]
-- column length_to: greatest length in the band [token]
-- column trajectories: fresh trajectories of this length whose log-probabilities are known under both
-- column token_gap: mean of |mean log-probability of trainer minus sampler| over them; 0 where the trainer samples itself [nat/token]
-- column log_ratio_mean: mean of log(trainer / sampler) of the whole response: the token mean times the length [nat]
-- column log_ratio_p05: 5 % quantile of these [nat]
-- column log_ratio_p50: median of these [nat]
-- column log_ratio_p95: 95 % quantile of these [nat]
-- column above_cap_share: responses whose ratio as a whole is above the cap: what a correction by sequence would cut, though hardly a token is above it [share]
with fresh as (
    select
        runs.study,
        runs.arm,
        trajectories.length,
        trajectories.behaviour_nll::double - trajectories.nll as apart,
        (2 ** floor(log2(trajectories.length)))::bigint as length_from
    from trajectories
    join scope($study, $run) as runs using (run)
    where
        not trajectories.replayed
        and trajectories.length > 0
        and trajectories.nll is not null
        and trajectories.behaviour_nll is not null
)
select
    study,
    arm,
    length_from,
    2 * length_from - 1 as length_to,
    count(*) as trajectories,
    avg(abs(apart)) as token_gap,
    avg(apart * length) as log_ratio_mean,
    quantile_cont(apart * length, 0.05) as log_ratio_p05,
    quantile_cont(apart * length, 0.5) as log_ratio_p50,
    quantile_cont(apart * length, 0.95) as log_ratio_p95,
    avg((apart * length > ln($cap))::int) as above_cap_share
from fresh
group by study, arm, length_from
order by study, arm, length_from
