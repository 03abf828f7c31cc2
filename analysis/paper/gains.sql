-- purpose: What does ExGRPO gain over on-policy training on each backbone?
-- grain: a backbone and a domain
-- column backbone: model that training starts from
-- column domain: in distribution or out of distribution
-- column on_policy: average of on-policy training [point]
-- column exgrpo: average of ExGRPO [point]
-- column gain: the second minus the first [point]
-- column standard_error: of the gain, see `gaps` [point]
-- column beyond_two_errors: the gain is larger than two such errors
select
    backbone,
    domain,
    second_average as on_policy,
    first_average as exgrpo,
    gap as gain,
    standard_error,
    beyond_two_errors
from gaps
where "first" = 'ExGRPO' and "second" = 'on-policy'
order by domain, backbone
