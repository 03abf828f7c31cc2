-- purpose: Is every printed average the mean of the printed scores?
-- grain: a printed average whose parts are printed
-- column source: table of the paper
-- column backbone: model that training starts from
-- column method: method
-- column domain: in distribution, out of distribution, or instructions
-- column benchmarks: scores of the row
-- column printed: average as printed [point]
-- column recomputed: mean of the scores as printed [point]
-- column difference: printed minus recomputed [point]
-- column agrees: no further apart than rounding allows, 0.05 of the average and 0.05 of the scores
select
    printed_averages.source,
    backbone,
    method,
    domain,
    count(*) as benchmarks,
    any_value(average) as printed,
    avg(score) as recomputed,
    any_value(average) - avg(score) as difference,
    abs(any_value(average) - avg(score)) <= 0.1 + 1e-9 as agrees
from printed_averages
join scores using (backbone, method)
join benchmarks using (benchmark, domain)
group by printed_averages.source, backbone, method, domain
order by printed_averages.source, backbone, method, domain
