-- purpose: What has every run come to?
-- grain: a run, imports and base models included
-- column study: the study that the run belongs to
-- column run: run id
-- column arm: arm; `base` for the untrained model, `import` for foreign logs
-- column seed: seed of the run
-- column world: what the base model was pretrained on
-- column steps: training steps done [step]
-- column validation_accuracy: right validation samples at the last step evaluated [share]
-- column signal_share: groups of all steps with a non-zero advantage [share]
-- column flawed_share: right fresh training answers whose chain is known to be flawed [share]
-- column sampled_tokens: tokens sampled in training [token]
-- column seconds: training wall time, evaluation excluded [s]
WITH validation AS (
    SELECT run, avg(correct::INT) AS accuracy
    FROM evaluations
    WHERE benchmark = 'validation'
    GROUP BY run, step
    QUALIFY step = max(step) OVER (PARTITION BY run)
),
training AS (
    SELECT
        run,
        sum(signal_groups) / sum(groups) AS signal_share,
        sum(sampled_tokens)::BIGINT AS sampled_tokens
    FROM steps
    GROUP BY run
),
chains AS (
    SELECT run, avg((NOT chain_valid)::INT) AS flawed_share
    FROM trajectories
    WHERE correct AND NOT replayed
    GROUP BY run
)
SELECT
    runs.study,
    runs.run,
    runs.arm,
    runs.seed,
    runs.world,
    runs.steps,
    validation.accuracy AS validation_accuracy,
    training.signal_share,
    chains.flawed_share,
    training.sampled_tokens,
    runs.seconds
FROM runs
LEFT JOIN validation USING (run)
LEFT JOIN training USING (run)
LEFT JOIN chains USING (run)
ORDER BY runs.study, runs.arm, runs.seed, runs.run
