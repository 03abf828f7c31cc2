-- purpose: Which benchmarks carry the gain of ExGRPO over on-policy training?
-- grain: a backbone and a benchmark
-- column backbone: model that training starts from
-- column domain: in distribution or out of distribution
-- column benchmark: benchmark
-- column questions: its questions; null if unknown
-- column gain: score of ExGRPO minus that of on-policy training [point]
-- column part: what it brings to the gain of the average: gain / benchmarks of the domain [point]
-- column standard_error: of the gain, from drawing the questions alone, unpaired; see `item_errors` [point]
select
    backbone,
    domain,
    benchmark,
    any_value(questions) as questions,
    max(score) filter (where method = 'ExGRPO')
        - max(score) filter (where method = 'on-policy') as gain,
    gain / count(*) over (partition by backbone, domain) as part,
    sqrt(sum(score * (100 - score) / questions)) as standard_error
from scores
join benchmarks using (benchmark)
where method in ('ExGRPO', 'on-policy')
group by backbone, domain, benchmark
having count(*) = 2
order by backbone, domain, benchmark
