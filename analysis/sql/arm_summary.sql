-- purpose: What did each arm do in training: signal, flawed right answers, cost?
-- grain: an arm of a study
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column runs: runs of the arm, one a seed
-- column steps: training steps, least over the runs [step]
-- column signal_share: groups with a non-zero advantage, of all groups [share]
-- column experiential_share: groups whose question came from the buffer, of all groups [share]
-- column right_fresh: right fresh answers whose chain could be checked
-- column flawed_share: of those, chain not valid; null if none could be checked [share]
-- column seconds: training wall time, mean over the runs [s]
-- column sampled_tokens: tokens sampled, mean over the runs [token]
-- column distinct_questions: distinct fresh questions seen, mean over the runs
-- column retired_questions: questions retired at the end, mean over the runs
with by_run as (
    select
        run,
        sum(signal_groups)::bigint as signal_groups,
        sum(experiential_groups)::bigint as experiential_groups,
        sum(groups)::bigint as groups,
        max(total_sampled_tokens) as sampled_tokens,
        max(distinct_questions) as distinct_questions,
        max(retired_questions) as retired_questions
    from steps
    group by run
),
answers as (
    select run, sum(checked) as right_fresh, sum(flawed) as flawed
    from visits
    group by run
)
select
    runs.study,
    runs.arm,
    count(*) as runs,
    min(runs.steps) as steps,
    (sum(by_run.signal_groups) / nullif(sum(by_run.groups), 0))::double as signal_share,
    (sum(by_run.experiential_groups) / nullif(sum(by_run.groups), 0))::double
        as experiential_share,
    coalesce(sum(answers.right_fresh), 0)::bigint as right_fresh,
    (sum(answers.flawed) / nullif(sum(answers.right_fresh), 0))::double as flawed_share,
    avg(runs.seconds) as seconds,
    avg(by_run.sampled_tokens) as sampled_tokens,
    avg(by_run.distinct_questions) as distinct_questions,
    avg(by_run.retired_questions) as retired_questions
from scope($study, $run) as runs
left join by_run using (run)
left join answers using (run)
where runs.arm <> 'base' and runs.status <> 'imported'
group by runs.study, runs.arm
order by runs.study, runs.arm
