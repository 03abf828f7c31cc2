-- purpose: Which studies does the catalog hold?
-- grain: a study that has a run, imports together as `imports`; the one with most steps first
-- column study: study
-- column runs: its runs, base models included
-- column steps: training steps of all of them [step]
select study, count(*) as runs, coalesce(sum(steps), 0)::bigint as steps
from runs
group by study
order by steps desc, study
