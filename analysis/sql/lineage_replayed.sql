-- purpose: Which trajectories did each run replay most often?
-- grain: a trajectory that was replayed, the most replayed of a study first
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param most integer >= 1 = 50: trajectories a run at most
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column trajectory: id of the trajectory as first sampled
-- column question: question id
-- column text: the question as asked; null where the log does not hold it
-- column level: the question's level
-- column birth_step: the step whose policy sampled it [step]
-- column replays: how often it was replayed
-- column first_step: step of its first replay [step]
-- column last_step: step of its last replay [step]
-- column chain_valid: every step needed is shown and right
with replays as (
    select
        run,
        source,
        any_value(question) as question,
        any_value(level) as level,
        any_value(birth_step) as birth_step,
        count(*) as replays,
        min(step) as first_step,
        max(step) as last_step,
        any_value(chain_valid) as chain_valid
    from trajectories
    where replayed and source is not null
    group by run, source
    qualify row_number() over (partition by run order by replays desc, source) <= $most
),
texts as (
    select question, min(text) as text
    from questions
    group by question
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    replays.source as trajectory,
    replays.question,
    texts.text,
    replays.level,
    replays.birth_step,
    replays.replays,
    replays.first_step,
    replays.last_step,
    replays.chain_valid
from replays
join scope($study, $run) as runs using (run)
left join texts on texts.question = replays.question
order by runs.study, replays.replays desc, run, replays.source
