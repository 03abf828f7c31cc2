-- purpose: What does ExGRPO lose in each ablation, and is that beyond the draw of the questions?
-- grain: an ablation and a domain in which it was tested
-- column source: table of the paper
-- column method: the ablation
-- column domain: in distribution or out of distribution
-- column average: its average [point]
-- column exgrpo: average of ExGRPO in the row that the table sets its ablations against [point]
-- column gap: average minus exgrpo [point]
-- column standard_error: of the gap, see `gaps` [point]
-- column beyond_two_errors: the gap is larger than two such errors
select
    item_errors.source,
    item_errors.method,
    domain,
    item_errors.average,
    gaps.second_average as exgrpo,
    gaps.gap,
    gaps.standard_error,
    gaps.beyond_two_errors
from item_errors
join gaps using (backbone, domain)
where gaps."first" = item_errors.method
    -- Tables 3 and 7 print a row of their own for ExGRPO.
    and gaps."second" = if(item_errors.source = 'Table 6', 'ExGRPO', 'mu 0.5, sigma 1')
    and item_errors.source in ('Table 3', 'Table 6', 'Table 7')
    and item_errors.method not in ('mu 0.5, sigma 1', 'ExGRPO in RePO''s setting')
order by item_errors.source, domain, item_errors.method
