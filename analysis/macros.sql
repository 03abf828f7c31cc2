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
