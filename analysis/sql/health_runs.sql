-- purpose: How well does every run train, at its end and in all?
-- grain: a run, imports and base models included
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param window integer >= 1 = 10: steps that are the end of a run
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column status: running, stopped, done or imported
-- column steps: training steps logged [step]
-- column reward: mean reward of the fresh rollouts at the end [share]
-- column signal_share: groups with right and wrong answers at the end [share]
-- column entropy: mean token entropy of the fresh rollouts at the end [nat/token]
-- column length: mean response length of the fresh rollouts at the end [token]
-- column truncated_share: fresh rollouts cut at the length limit, at the end [share]
-- column clipped_share: tokens whose gradient the clip removed, at the end [share]
-- column ratio_replayed: mean importance ratio of replayed tokens at the end; null without replay
-- column ess_replayed: effective sample size of these ratios / tokens, at the end [share]
-- column grad_norm: gradient norm before clipping, mean at the end
-- column skipped_updates: updates left out for a non-finite or huge gradient, in all
-- column ungraded: trajectories that the grader could not judge, in all
with ends as (
    select
        steps.*,
        steps.step > max(steps.step) over (partition by run) - $window as at_end
    from steps
    join scope($study, $run) as runs using (run)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    runs.status,
    count(ends.step) as steps,
    avg(ends.reward) filter (where ends.at_end) as reward,
    sum(ends.signal_groups) filter (where ends.at_end)
        / nullif(sum(ends.groups) filter (where ends.at_end), 0) as signal_share,
    avg(ends.entropy) filter (where ends.at_end) as entropy,
    avg(ends.length) filter (where ends.at_end) as length,
    avg(ends.truncated_share) filter (where ends.at_end) as truncated_share,
    avg(ends.clipped_share) filter (where ends.at_end) as clipped_share,
    avg(ends.ratio_mean_replayed) filter (where ends.at_end) as ratio_replayed,
    avg(ends.ratio_ess_replayed) filter (where ends.at_end) as ess_replayed,
    avg(ends.grad_norm) filter (where ends.at_end) as grad_norm,
    sum(ends.skipped_updates)::bigint as skipped_updates,
    sum(ends.ungraded)::bigint as ungraded
from scope($study, $run) as runs
left join ends using (run)
group by runs.study, runs.arm, runs.seed, run, runs.status
order by runs.study, runs.arm, runs.seed, run
