-- purpose: By which rule does a run draw questions from its buffer?
-- grain: a run whose settings say so: not an import, nor a run of another trainer
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column replay: trajectory, question (drawn anew, none replayed) or none
-- column rule: weight of a bucket: gaussian, linear, sqrt or uniform; `questions`: every question alike
-- column mu: centre of the Gaussian, as a share of K [share]
-- column sigma: its width, in the unit of `sigma_unit`
-- column sigma_unit: count (right answers) or accuracy (k / K)
-- column group_size: K, rollouts of a group
select
    study,
    arm,
    seed,
    run,
    settings ->> '$.experience.replay' as replay,
    settings ->> '$.experience.draw' as rule,
    (settings ->> '$.experience.mu')::double as mu,
    (settings ->> '$.experience.sigma')::double as sigma,
    settings ->> '$.experience.sigma_unit' as sigma_unit,
    (settings ->> '$.rollout.group_size')::bigint as group_size
from scope($study, $run)
where settings ->> '$.experience.draw' is not null
order by study, arm, seed, run
