-- purpose: What is known of every run: its settings, where and when it ran, and what it took?
-- grain: a run, imports and base models included
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm; `base` for the untrained model; the name of an import
-- column seed: seed of the run
-- column run: run id
-- column status: running, stopped, done or imported
-- column steps: training steps done [step]
-- column planned: training steps that the settings ask for [step]
-- column seconds: training wall time, evaluation excluded [s]
-- column sampled_tokens: tokens sampled in training [token]
-- column trained_tokens: response tokens in the updates [token]
-- column attempts: 1 + number of resumes
-- column commit: git commit of the code; `-dirty` when files were changed
-- column started: when the first attempt started [UTC]
-- column finished: when the run ended; null while it runs [UTC]
-- column hardware: processor, threads, device
-- column world: what the base model was pretrained on
-- column base_model: the model that training starts from
-- column tokenizer: hash of its tokenizer
-- column settings_hash: hash of the resolved settings
-- column settings: the resolved settings as JSON
-- column versions: Python and library versions as JSON
with taken as (
    select
        run,
        sum(sampled_tokens)::bigint as sampled_tokens,
        sum(trained_tokens)::bigint as trained_tokens
    from steps
    group by run
)
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    runs.status,
    runs.steps,
    -- Settings of an import need be no JSON of ours.
    try_cast(
        if(json_valid(runs.settings), runs.settings ->> '$.training.steps', null) as bigint
    ) as planned,
    runs.seconds,
    taken.sampled_tokens,
    taken.trained_tokens,
    runs.attempts,
    runs."commit",
    runs.started,
    runs.finished,
    runs.hardware,
    runs.world,
    runs.base_model,
    runs.tokenizer,
    runs.settings_hash,
    runs.settings,
    runs.versions
from scope($study, $run) as runs
left join taken using (run)
order by runs.study, runs.arm, runs.seed, run
