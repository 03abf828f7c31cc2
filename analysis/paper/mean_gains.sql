-- purpose: How much of the mean gain over all backbones is one of them?
-- grain: a backbone that is left out, and a domain
-- column left_out: the backbone left out
-- column domain: in distribution or out of distribution
-- column gain: its own gain of ExGRPO over on-policy training [point]
-- column backbones: all backbones
-- column mean_gain: mean gain over all [point]
-- column mean_without: mean gain over the others [point]
select
    backbone as left_out,
    domain,
    gain,
    count(*) over of_domain as backbones,
    avg(gain) over of_domain as mean_gain,
    (sum(gain) over of_domain - gain) / (backbones - 1) as mean_without
from gains
window of_domain as (partition by domain)
order by domain, left_out
