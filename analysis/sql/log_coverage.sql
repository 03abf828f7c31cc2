-- purpose: Is the log complete?
-- grain: a run, imports and base models included
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column status: running, stopped, done or imported
-- column steps_expected: training steps done, as the run says [step]
-- column steps: of these, with a row in `steps` [step]
-- column groups_expected: groups, as `steps` counts them
-- column groups: groups in `visits`
-- column trajectories_expected: trajectories, as `visits` counts them
-- column trajectories: rows of `trajectories`
-- column small_groups: groups with fewer fresh rollouts than others of the run that have as many replayed
-- column float_trajectories: trajectories whose token log-probabilities and entropies were logged
-- column float_share: of the trajectories [share]
-- column validations_expected: evaluations of validation that the settings ask for; null without
-- column validations: steps with samples of validation
-- column test_samples: samples of other benchmarks at the tested step
-- column missing: what is missing; null if nothing is
with visited as (
    select
        run,
        step,
        count(*) as groups,
        sum(fresh + replayed) as trajectories,
        count(*) filter (where fresh < most) as small_groups
    from (select *, max(fresh) over (partition by run, replayed) as most from visits)
    group by run, step
),
by_step as (
    select
        run,
        count(*) filter (where steps.step between 1 and runs.steps) as steps,
        sum(steps.groups) as groups_expected,
        sum(visited.groups) as groups,
        sum(visited.trajectories) as trajectories_expected,
        sum(visited.small_groups) as small_groups,
        sum(steps.token_floats_logged) as float_trajectories,
        count(*) filter (where steps.groups <> coalesce(visited.groups, 0)) as uneven_steps
    from steps
    full join visited using (run, step)
    join scope($study, $run) as runs using (run)
    group by run
),
absent as (
    select run, min(step) as first_step
    from (select run, unnest(range(1, steps + 1)) as step from scope($study, $run) as runs)
    anti join steps using (run, step)
    group by run
),
logged as (
    select run, count(*) as trajectories
    from trajectories
    group by run
),
validated as (
    select run, count(distinct step) as validations
    from evaluations
    semi join scope($study, $run) as runs using (run)
    where benchmark = 'validation'
    group by run
),
tested as (
    select run, count(*) as test_samples
    from tested_samples($study, $run)
    group by run
),
plans as (
    select
        run,
        (settings ->> '$.training.steps')::bigint as planned,
        (settings ->> '$.evaluation.every')::bigint as every
    from scope($study, $run) as runs
),
coverage as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        run,
        runs.status,
        coalesce(runs.steps, 0) as steps_expected,
        coalesce(by_step.steps, 0) as steps,
        coalesce(by_step.groups_expected, 0)::bigint as groups_expected,
        coalesce(by_step.groups, 0)::bigint as groups,
        coalesce(by_step.trajectories_expected, 0)::bigint as trajectories_expected,
        coalesce(logged.trajectories, 0) as trajectories,
        coalesce(by_step.small_groups, 0)::bigint as small_groups,
        coalesce(by_step.float_trajectories, 0)::bigint as float_trajectories,
        -- At the start, every so many steps, and at the planned end.
        1 + runs.steps // plans.every
            + (runs.steps = plans.planned and runs.steps % plans.every > 0)::int
            as validations_expected,
        coalesce(validated.validations, 0) as validations,
        coalesce(tested.test_samples, 0) as test_samples,
        absent.first_step,
        coalesce(by_step.uneven_steps, 0) as uneven_steps
    from scope($study, $run) as runs
    left join by_step using (run)
    left join absent using (run)
    left join logged using (run)
    left join validated using (run)
    left join tested using (run)
    left join plans using (run)
)
select
    study,
    arm,
    seed,
    run,
    status,
    steps_expected,
    steps,
    groups_expected,
    groups,
    trajectories_expected,
    trajectories,
    small_groups,
    float_trajectories,
    float_trajectories / nullif(trajectories, 0) as float_share,
    validations_expected,
    validations,
    test_samples,
    nullif(
        concat_ws(
            '; ',
            if(
                steps < steps_expected,
                format(
                    '{} of {} rows of steps, the first of step {}',
                    steps_expected - steps, steps_expected, first_step
                ),
                null
            ),
            if(uneven_steps > 0, format('groups of {} steps', uneven_steps), null),
            if(
                trajectories <> trajectories_expected,
                format('{} of {} trajectories', trajectories_expected - trajectories,
                    trajectories_expected),
                null
            ),
            if(small_groups > 0, format('rollouts of {} groups', small_groups), null),
            if(
                trajectories > 0 and float_trajectories = 0,
                'token log-probabilities and entropies',
                null
            ),
            if(
                validations < validations_expected,
                format('{} of {} validations', validations_expected - validations,
                    validations_expected),
                null
            ),
            if(status = 'done' and test_samples = 0, 'test samples of the tested step', null)
        ),
        ''
    ) as missing
from coverage
order by study, arm, seed, run
