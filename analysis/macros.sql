-- Macros that the catalog holds beside its tables, for the named queries and for typed SQL.

-- Which runs a question is about: those of a study, of a list, or (null) all.
create or replace macro scope(of_study, of_runs) as table
select * from runs
where (of_study is null or study = of_study)
    and (of_runs is null or list_contains(of_runs, run));

-- The value that belongs to the marker; an error that names the markers if there is no such one.
create or replace macro by_marker(marker, if_flawed, if_shortcut, if_code, if_repetition) as
case marker
    when 'flawed' then if_flawed
    when 'shortcut' then if_shortcut
    when 'code' then if_code
    when 'repetition' then if_repetition
    else error('marker is flawed, shortcut, code or repetition, not ' || coalesce(marker, 'null'))
end;

-- `visits` with the counts of one marker. `right_fresh` and `replayed_known`: right fresh and
-- replayed trajectories whose marker is known; `marked` and `replayed_marked`: those of them that
-- have it, null where it is not known.
create or replace macro marked_visits(marker) as table
select
    *,
    if(marked is null, 0, by_marker(marker, checked, checked, "right", "right")) as right_fresh,
    if(
        replayed_marked is null,
        0,
        by_marker(marker, replayed_checked, replayed_checked, replayed, replayed)
    ) as replayed_known
from (
    select
        *,
        by_marker(marker, flawed, shortcut, code, repetition) as marked,
        by_marker(
            marker, replayed_flawed, replayed_shortcut, replayed_code, replayed_repetition
        ) as replayed_marked
    from visits
);

-- The name, if it is one of the names or there are none; else an error that lists them.
create or replace macro one_of(of_name, names, what) as
if(
    names is null or list_contains(names, of_name),
    of_name,
    error(
        what || ' ' || coalesce(of_name, 'null') || ' has no evaluations here; those that have: '
        || array_to_string(names, ', ')
    )
);

-- The benchmark, if runs in scope were evaluated on it, or on none at all; else an error.
create or replace macro known_benchmark(of_benchmark, of_study, of_runs) as (
    select one_of(of_benchmark, list(distinct benchmark order by benchmark), 'benchmark')
    from evaluations
    semi join scope(of_study, of_runs) as runs using (run)
);

-- The arm, if runs of it in scope were evaluated on the benchmark, or none at all; else an error.
create or replace macro known_arm(of_arm, of_benchmark, of_study, of_runs) as (
    select one_of(of_arm, list(distinct runs.arm order by runs.arm), 'arm')
    from evaluations
    join scope(of_study, of_runs) as runs using (run)
    where evaluations.benchmark = of_benchmark
);

-- Whether a benchmark is `in` or `out` of the distribution trained on; null for validation. Logs of
-- an older version do not say: of their tests, `test_ood` is out and every other one in.
create or replace macro domain_of(of_benchmark, of_domain) as
case
    when of_benchmark = 'validation' then null
    else coalesce(of_domain, if(of_benchmark = 'test_ood', 'out', 'in'))
end;

-- The step at which a run counts as tested: its last one, or that of its best checkpoint, where
-- the settings say so; then its tests are of no other step.
create or replace macro tested_step(of_settings, of_steps, last_evaluated) as
if(
    (of_settings ->> '$.evaluation.checkpoint') = 'best',
    last_evaluated,
    coalesce(of_steps, 0)
);

-- Samples of the tests, each at the step at which its run counts as tested.
create or replace macro tested_samples(of_study, of_runs) as table
select
    runs.study,
    runs.arm,
    runs.seed,
    evaluations.*
from evaluations
join scope(of_study, of_runs) as runs using (run)
where evaluations.benchmark <> 'validation'
qualify evaluations.step = tested_step(
    runs.settings,
    runs.steps,
    max(evaluations.step) over (partition by evaluations.run, evaluations.benchmark)
);

-- Chance that at least one of k samples is right, drawn from n of which c are: unbiased pass@k.
create or replace macro pass_at_k(n, c, k) as
case
    when c = 0 then 0
    when n - c < k then 1
    else 1 - exp(lgamma(n - c + 1) - lgamma(n - c - k + 1) - lgamma(n + 1) + lgamma(n - k + 1))
end;

-- How many questions a run had to train on: as many as its settings let the task make. Of a data set
-- those that the catalog holds, at most the limit of the settings: questions do not tell their study,
-- so those that only another study loaded count too. Null if neither is known.
create or replace macro train_questions(of_settings) as coalesce(
    try_cast(of_settings ->> '$.questions.train' as bigint),
    least(
        (of_settings ->> '$.questions.train.limit')::bigint,
        (
            select nullif(count(*), 0)
            from questions
            where split = 'train' and source = (of_settings ->> '$.questions.train.dataset')
        )
    )
);
