-- purpose: How far apart are two methods on one backbone, and is that beyond the draw of the questions?
-- grain: an ordered pair of methods of a backbone, and a domain
-- column backbone: model that training starts from
-- column domain: in distribution, out of distribution, or instructions
-- column first: one method
-- column second: the other
-- column first_average: its average as printed [point]
-- column second_average: its average as printed [point]
-- column gap: first minus second [point]
-- column standard_error: of the gap, see `item_errors`; as if the methods answered different questions, for the paper prints no answers: paired by question it would be smaller. Null if unknown [point]
-- column beyond_two_errors: the gap is larger than two such errors; null if unknown
select
    one.backbone,
    one.domain,
    one.method as "first",
    two.method as "second",
    one.average as first_average,
    two.average as second_average,
    one.average - two.average as gap,
    sqrt(one.standard_error ** 2 + two.standard_error ** 2) as standard_error,
    abs(gap) > 2 * sqrt(one.standard_error ** 2 + two.standard_error ** 2) as beyond_two_errors
from item_errors as one
join item_errors as two
    on one.backbone = two.backbone and one.domain = two.domain and one.method <> two.method
order by one.backbone, one.domain, one.method, two.method
