-- purpose: Among right answers, are those with a valid chain more certain, within one difficulty?
-- grain: an arm of a study, a count k of right answers in the group, and whether the chain is valid
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column bucket: k, right answers in the group of K
-- column group_size: K
-- column chain_valid: every step needed is shown and right
-- column trajectories: right fresh trajectories
-- column mean_entropy: mean over them of the mean token entropy [nat/token]
-- column sd_entropy: standard deviation over them [nat/token]
-- column mean_nll: mean over them of the mean negative log-probability [nat/token]
-- column mean_length: mean response length [token]
select
    runs.study,
    runs.arm,
    trajectories.group_successes as bucket,
    trajectories.group_size,
    trajectories.chain_valid,
    count(*) as trajectories,
    avg(trajectories.mean_entropy) as mean_entropy,
    stddev_samp(trajectories.mean_entropy) as sd_entropy,
    avg(trajectories.nll) as mean_nll,
    avg(trajectories.length) as mean_length
from trajectories
join scope($study, $run) as runs using (run)
where trajectories.correct
    and not trajectories.replayed
    and trajectories.chain_valid is not null
group by all
order by runs.study, runs.arm, bucket, trajectories.group_size, trajectories.chain_valid
