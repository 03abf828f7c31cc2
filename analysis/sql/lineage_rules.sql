-- purpose: By which rules does each run store and replay experience?
-- grain: a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column status: running, stopped, done or imported
-- column replay: none, question (drawn again, K fresh rollouts) or trajectory; null: not told
-- column order: which stored trajectory: lowest, highest, random, ...
-- column metric: of this metric
-- column join_source: what joins a group: buffer, expert or pool
-- column store: what is stored: successes or all
-- column store_truncated: also responses that were cut at the length limit
-- column collect_before_start: also before replay is on
-- column on_step: first step with replay on; null: never [step]
with starts as (
    select run, min(step) as on_step
    from steps
    where replay_on
    group by run
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    runs.status,
    runs.settings ->> '$.experience.replay' as replay,
    runs.settings ->> '$.experience.order' as "order",
    runs.settings ->> '$.experience.metric' as metric,
    runs.settings ->> '$.join.source' as join_source,
    runs.settings ->> '$.buffer.store' as store,
    (runs.settings ->> '$.buffer.store_truncated')::boolean as store_truncated,
    (runs.settings ->> '$.buffer.collect_before_start')::boolean as collect_before_start,
    starts.on_step
from scope($study, $run) as runs
left join starts using (run)
order by runs.study, runs.arm, runs.seed, run
