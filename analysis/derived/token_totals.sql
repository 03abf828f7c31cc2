-- Entropies of `tokens` by token; `exgrpo/tables/derived.py` says what each column means.
with entropies as (
    select
        trajectories.run,
        trajectories.replayed,
        trajectories.correct,
        unnest(tokens.token_ids) as token_id,
        unnest(tokens.entropies) as entropy
    from tokens
    join trajectories using (run, step, "group", slot)
),
bounds as (
    select run, quantile_cont(entropy, 0.8) as top_fifth
    from entropies
    group by run
)
select
    run,
    replayed,
    correct,
    token_id,
    count(*) as tokens,
    count(*) filter (entropy >= top_fifth) as high,
    sum(entropy::double) as summed_entropy
from entropies
join bounds using (run)
where entropy is not null and token_id is not null
group by run, replayed, correct, token_id
