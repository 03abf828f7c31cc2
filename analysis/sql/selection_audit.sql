-- purpose: How often would another metric have replayed the same trajectory as mean entropy?
-- grain: an arm of the study that replays trajectories
-- param study: the study
-- column arm: arm
-- column draws: visits of a question with more than one stored trajectory
-- column candidates: stored trajectories of such a question, mean
-- column chance: how often a random choice takes the one of lowest mean entropy [share]
-- column released: how often the released code's metric does, LUFFY#57 [share]
-- column summed_entropy: how often the lowest summed entropy does [share]
-- column shortest: how often the shortest does [share]
-- column nll: how often the lowest NLL does [share]
-- column birth_entropy: how often the lowest mean entropy at birth does [share]
-- column released_is_shortest: how often the released metric takes the shortest [share]
-- column released_is_summed: how often the released metric takes the lowest summed entropy [share]
with draws as (
    select
        arm,
        run,
        step,
        "group",
        question,
        count(*) as stored,
        arg_min(source, mean_entropy_rank) as by_mean,
        arg_min(source, released_rank) as by_released,
        arg_min(source, summed_entropy_rank) as by_sum,
        arg_min(source, length_rank) as by_length,
        arg_min(source, nll_rank) as by_nll,
        arg_min(source, birth_entropy_rank) as by_birth
    from candidates
    join runs using (run)
    where study = $study
    group by all
    having count(*) > 1
)
select
    arm,
    count(*) as draws,
    avg(stored) as candidates,
    avg(1 / stored) as chance,
    avg((by_released = by_mean)::int) as released,
    avg((by_sum = by_mean)::int) as summed_entropy,
    avg((by_length = by_mean)::int) as shortest,
    avg((by_nll = by_mean)::int) as nll,
    avg((by_birth = by_mean)::int) as birth_entropy,
    avg((by_released = by_length)::int) as released_is_shortest,
    avg((by_released = by_sum)::int) as released_is_summed
from draws
group by arm
order by arm
