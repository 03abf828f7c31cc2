-- Entropies of `tokens` by tenth of the response; `exgrpo/tables/derived.py` says what each column means.
with entropies as (
    select
        trajectories.run,
        trajectories.replayed,
        trajectories.correct,
        unnest(tokens.entropies) as entropy,
        (generate_subscripts(tokens.entropies, 1) - 1) * 10 // len(tokens.entropies) as tenth
    from tokens
    join trajectories using (run, step, "group", slot)
)
select
    run,
    replayed,
    correct,
    tenth,
    count(*) as tokens,
    sum(entropy::double) as summed_entropy,
    sum(entropy::double * entropy::double) as summed_square
from entropies
where entropy is not null
group by run, replayed, correct, tenth
