-- purpose: Which steps of a run are missing in between, or have numbers that are none?
-- grain: a run that has rows of `steps`
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column first_step: first step logged [step]
-- column last_step: last step logged [step]
-- column steps: steps logged [step]
-- column absent: steps between these two without a row [step]
-- column first_absent: the first of them; null if none is [step]
-- column no_entropy: steps without the entropy of the fresh rollouts [step]
-- column not_finite: steps whose loss, gradient norm, reward or entropy is infinite or no number [step]
-- column first_not_finite: the first of them; null if none is [step]
-- column skipped: steps with an update left out for a non-finite or huge gradient [step]
-- column first_skipped: the first of them; null if none is [step]
with marked as (
    select
        steps.*,
        not isfinite(
            coalesce(loss, 0) + coalesce(grad_norm, 0) + coalesce(reward, 0) + coalesce(entropy, 0)
        ) as wrong,
        lag(step) over (partition by run order by step) as before
    from steps
    semi join scope($study, $run) as runs using (run)
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    min(step) as first_step,
    max(step) as last_step,
    count(*) as steps,
    max(step) - min(step) + 1 - count(*) as absent,
    min(before + 1) filter (where step > before + 1) as first_absent,
    count(*) filter (where entropy is null) as no_entropy,
    count(*) filter (where wrong) as not_finite,
    min(step) filter (where wrong) as first_not_finite,
    count(*) filter (where skipped_updates > 0) as skipped,
    min(step) filter (where skipped_updates > 0) as first_skipped
from marked
join scope($study, $run) as runs using (run)
group by all
order by runs.study, runs.arm, runs.seed, run
