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
-- column task: the task that makes the training questions, or the data set that they are of
-- column min_level: least level of the training questions; null if they are of a data set
-- column max_level: greatest level of the questions in distribution; null likewise
-- column max_ood_level: greatest level of the questions out of distribution; null likewise
-- column test_samples: samples a test question
-- column temperature: sampling temperature of the tests
-- column checkpoint: which checkpoint is tested: `final` or `best`, by validation
-- column validated_on_tests: validation questions may be test questions
-- column steps: training steps done [step]
-- column seconds: training wall time [s]
-- column attempts: 1 + number of resumes
-- column status: running or done
-- column commit: git commit of the code
-- column hardware: processor, threads, device
-- column versions: Python and library versions as JSON
with described as (
    select
        *,
        settings ->> '$.questions.train.dataset' as loaded,
        settings ->> '$.base.package.name' as package
    from scope($study, $run)
)
select
    study,
    run,
    arm,
    seed,
    world,
    coalesce(package, base_model) as base_model,
    if(
        coalesce(package, settings ->> '$.base.path') is null,
        (settings ->> '$.base.pretraining.max_level')::bigint,
        null
    ) as pretrained,
    coalesce(loaded, settings ->> '$.questions.task') as task,
    if(loaded is null, (settings ->> '$.questions.min_level')::bigint, null) as min_level,
    if(loaded is null, (settings ->> '$.questions.max_level')::bigint, null) as max_level,
    if(loaded is null, (settings ->> '$.questions.max_ood_level')::bigint, null) as max_ood_level,
    (settings ->> '$.evaluation.test_samples')::bigint as test_samples,
    (settings ->> '$.evaluation.temperature')::double as temperature,
    if(
        (settings -> '$.evaluation') is null,
        null,
        coalesce(settings ->> '$.evaluation.checkpoint', 'final')
    ) as checkpoint,
    coalesce((settings ->> '$.questions.validate_on_tests')::boolean, false) as validated_on_tests,
    steps,
    seconds,
    attempts,
    status,
    "commit",
    hardware,
    versions
from described
order by study, arm, seed, run
