-- purpose: How far would each average move with other questions of the same kind?
-- grain: a printed average
-- column source: table of the paper
-- column backbone: model that training starts from
-- column method: method
-- column domain: in distribution, out of distribution, or instructions
-- column average: average as printed [point]
-- column benchmarks: scores of the row; 0 if they are not printed
-- column sized: of them, benchmarks whose number of questions is known
-- column standard_error: of the average, from drawing the questions alone: sqrt(sum p (1 - p) / n) / benchmarks. A question counts as wholly right or wrong, which is the most it can vary, so for avg@32 it is an upper bound; a benchmark of unknown size brings none, which makes it a lower one; seeds are not in it. Null if no part is known [point]
select
    printed_averages.source,
    backbone,
    method,
    domain,
    any_value(average) as average,
    count(score) as benchmarks,
    count(score) filter (where questions is not null) as sized,
    sqrt(sum(score * (100 - score) / questions)) / count(score) as standard_error
from printed_averages
left join (
    select backbone, method, domain, score, questions
    from scores
    join benchmarks using (benchmark)
) as parts using (backbone, method, domain)
group by printed_averages.source, backbone, method, domain
order by printed_averages.source, backbone, method, domain
