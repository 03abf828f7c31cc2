-- purpose: On what kinds of question does the paper compare ExGRPO with training without replay?
-- grain: a domain
-- column domain: in distribution (mathematics), out of distribution, or instructions
-- column benchmarks: benchmarks with a score of ExGRPO
-- column sources: tables with such a score
select
    domain,
    count(distinct benchmark) as benchmarks,
    string_agg(distinct source, ', ' order by source) as sources
from scores
join benchmarks using (benchmark)
where method = 'ExGRPO'
group by domain
order by domain
