-- purpose: How often would another metric have replayed the same trajectory as mean entropy?
-- grain: an arm of a study that replays trajectories
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
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
    -- Two metrics agree where one candidate has rank 0 by both: ranks have no ties.
    select
        run,
        step,
        "group",
        count(*) as stored,
        bool_or(mean_entropy_rank = 0 and released_rank = 0) as released,
        bool_or(mean_entropy_rank = 0 and summed_entropy_rank = 0) as summed_entropy,
        bool_or(mean_entropy_rank = 0 and length_rank = 0) as shortest,
        bool_or(mean_entropy_rank = 0 and nll_rank = 0) as nll,
        bool_or(mean_entropy_rank = 0 and birth_entropy_rank = 0) as birth_entropy,
        bool_or(released_rank = 0 and length_rank = 0) as released_is_shortest,
        bool_or(released_rank = 0 and summed_entropy_rank = 0) as released_is_summed
    from candidates
    group by all
    having count(*) > 1
)
select
    runs.study,
    runs.arm,
    count(*) as draws,
    avg(draws.stored) as candidates,
    avg(1 / draws.stored) as chance,
    avg(draws.released::int) as released,
    avg(draws.summed_entropy::int) as summed_entropy,
    avg(draws.shortest::int) as shortest,
    avg(draws.nll::int) as nll,
    avg(draws.birth_entropy::int) as birth_entropy,
    avg(draws.released_is_shortest::int) as released_is_shortest,
    avg(draws.released_is_summed::int) as released_is_summed
from draws
join scope($study, $run) as runs using (run)
group by runs.study, runs.arm
order by runs.study, runs.arm
