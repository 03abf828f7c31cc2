-- purpose: What has every run come to?
-- grain: a run, imports and base models included
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: the study that the run belongs to
-- column run: run id
-- column arm: arm; `base` for the untrained model; the name of an import
-- column seed: seed of the run
-- column world: what the base model was pretrained on
-- column steps: training steps done [step]
-- column validation_accuracy: right validation samples at the last step evaluated [share]
-- column signal_share: groups of all steps with a non-zero advantage [share]
-- column flawed_share: right fresh training answers whose chain is known to be flawed [share]
-- column sampled_tokens: tokens sampled in training [token]
-- column seconds: training wall time, evaluation excluded [s]
with validation as (
    select run, avg(correct::int) as accuracy
    from evaluations
    where benchmark = 'validation'
    group by run, step
    qualify step = max(step) over (partition by run)
),
training as (
    select
        run,
        sum(signal_groups) / sum(groups) as signal_share,
        sum(sampled_tokens)::bigint as sampled_tokens
    from steps
    group by run
),
chains as (
    select run, sum(flawed) / nullif(sum(checked), 0) as flawed_share
    from visits
    group by run
)
select
    runs.study,
    runs.run,
    runs.arm,
    runs.seed,
    runs.world,
    runs.steps,
    validation.accuracy as validation_accuracy,
    training.signal_share,
    chains.flawed_share,
    training.sampled_tokens,
    runs.seconds
from scope($study, $run) as runs
left join validation using (run)
left join training using (run)
left join chains using (run)
order by runs.study, runs.arm, runs.seed, runs.run
