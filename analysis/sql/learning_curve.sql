-- purpose: How does accuracy on a benchmark change with training?
-- grain: a run at one evaluated step
-- param study: the study
-- param benchmark: validation, test_id or test_ood
-- column arm: arm
-- column seed: seed of the run; null for the base model
-- column run: run id
-- column step: training step of the checkpoint; 0 is the base model [step]
-- column questions: questions asked
-- column samples: graded samples over all questions
-- column accuracy: right samples [share]
SELECT
    runs.arm,
    runs.seed,
    run,
    evaluations.step,
    count(DISTINCT evaluations.question) AS questions,
    count(evaluations.correct) AS samples,
    avg(evaluations.correct::INT) AS accuracy
FROM evaluations
JOIN runs USING (run)
WHERE runs.study = $study AND evaluations.benchmark = $benchmark
GROUP BY ALL
ORDER BY runs.arm, runs.seed, run, evaluations.step
