-- purpose: What does a step of ExGRPO cost, against one of on-policy training?
-- grain: a backbone
-- column backbone: model that training starts from
-- column on_policy: mean time a step of on-policy training [s]
-- column exgrpo: mean time a step of ExGRPO [s]
-- column percent: how much more the second is than the first [%]
-- column log_ratio: logarithm of the second over the first
-- column buffer_gigabytes: memory of the buffer [GB]
select
    backbone,
    max(mean_seconds) filter (where method = 'on-policy') as on_policy,
    max(mean_seconds) filter (where method = 'ExGRPO') as exgrpo,
    100 * (exgrpo / on_policy - 1) as percent,
    ln(exgrpo / on_policy) as log_ratio,
    max(buffer_gigabytes) as buffer_gigabytes
from costs
group by backbone
order by backbone
