-- One row a group of `trajectories`; `exgrpo/tables/derived.py` says what each column means.
-- A count of what the log tells of no trajectory of the group is null, not 0.
with groups as (
    select
        run,
        step,
        "group",
        any_value(question) as question,
        any_value(level) as level,
        bool_or(experiential) as experiential,
        any_value(bucket_drawn) as bucket_drawn,
        any_value(bucket) as bucket,
        any_value(group_successes) as successes,
        any_value(group_size) as size,
        count(*) filter (not replayed) as fresh,
        count(correct) filter (not replayed) as graded,
        count(*) filter (not replayed and correct) as "right",
        avg(mean_entropy) filter (not replayed) as mean_entropy,
        avg(length) filter (not replayed) as length,
        if(
            count(finish) > 0, count(*) filter (not replayed and finish = 'length'), null
        ) as truncated,
        nullif(count(distinct response) filter (not replayed), 0) as "distinct",
        nullif(
            count(distinct lower(regexp_replace(response, '\s', '', 'g'))) filter (not replayed), 0
        ) as distinct_plain,
        count(chain_valid) filter (not replayed and correct) as checked,
        count(*) filter (not replayed and correct and not chain_valid) as flawed,
        if(
            count(shortcut) > 0, count(*) filter (not replayed and correct and shortcut), null
        ) as shortcut,
        if(count(code) > 0, count(*) filter (not replayed and correct and code), null) as code,
        if(
            count(repetition) > 0, count(*) filter (not replayed and correct and repetition), null
        ) as repetition,
        count(*) filter (replayed) as replayed,
        count(chain_valid) filter (replayed) as replayed_checked,
        count(*) filter (replayed and not chain_valid) as replayed_flawed,
        if(count(shortcut) > 0, count(*) filter (replayed and shortcut), null) as replayed_shortcut,
        if(count(code) > 0, count(*) filter (replayed and code), null) as replayed_code,
        if(count(repetition) > 0, count(*) filter (replayed and repetition), null)
            as replayed_repetition
    from trajectories
    group by run, step, "group"
)
select
    *,
    "right" / nullif(graded, 0) as success_share,
    row_number() over in_order as visit,
    lag(step) over in_order as previous_step,
    lag(successes) over in_order as previous_successes,
    lag(bucket) over in_order as previous_bucket,
    lag("right" / nullif(graded, 0)) over in_order as previous_share,
    lead(step) over in_order as next_step,
    lead("right" / nullif(graded, 0)) over in_order as next_share
from groups
window in_order as (partition by run, question order by step, "group")
