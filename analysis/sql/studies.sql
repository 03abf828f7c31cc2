-- purpose: Which studies does the catalog hold?
-- grain: a study that has a run, imports together as `imports`
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column runs: its runs, base models included
-- column steps: training steps of all of them [step]
select study, count(*) as runs, coalesce(sum(steps), 0)::bigint as steps
from scope($study, $run)
group by study
order by study
