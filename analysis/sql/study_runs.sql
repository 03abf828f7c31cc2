-- purpose: What was run: every run of a study with what decides it
-- grain: a run, the base models included
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column run: run id
-- column arm: arm; `base` for the untrained model
-- column seed: seed of the run; null for the base model
-- column world: name of the world, for example `hard`
-- column base_model: model that training starts from
-- column pretrained: longest chain that the base model was pretrained on; null if not pretrained here
-- column task: the task
-- column min_level: steps of the shortest question
-- column max_level: steps of the longest question in distribution
-- column max_ood_level: steps of the longest question out of distribution
-- column test_samples: samples a test question
-- column temperature: sampling temperature of the tests
-- column steps: training steps done [step]
-- column seconds: training wall time [s]
-- column attempts: 1 + number of resumes
-- column status: running or done
-- column commit: git commit of the code
-- column hardware: processor, threads, device
-- column versions: Python and library versions as JSON
select
    study,
    run,
    arm,
    seed,
    world,
    base_model,
    (settings ->> '$.base.pretraining.max_level')::bigint as pretrained,
    settings ->> '$.questions.task' as task,
    (settings ->> '$.questions.min_level')::bigint as min_level,
    (settings ->> '$.questions.max_level')::bigint as max_level,
    (settings ->> '$.questions.max_ood_level')::bigint as max_ood_level,
    (settings ->> '$.evaluation.test_samples')::bigint as test_samples,
    (settings ->> '$.evaluation.temperature')::double as temperature,
    steps,
    seconds,
    attempts,
    status,
    "commit",
    hardware,
    versions
from scope($study, $run)
order by study, arm, seed, run
