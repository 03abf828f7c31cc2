-- purpose: How did every run train, in so few points that a small figure can show them?
-- grain: a run and a stretch of consecutive training steps
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param points integer >= 1 = 200: at most so many stretches a run
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column first_step: first step of the stretch [step]
-- column last_step: last step of it [step]
-- column reward: mean reward of the fresh rollouts, mean over the stretch [share]
-- column entropy: mean token entropy of the fresh rollouts, mean [nat/token]
-- column length: mean response length of the fresh rollouts, mean [token]
-- column ratio: mean importance ratio of replayed tokens, mean; null without replay
-- column buffer_questions: questions in the buffer, mean
with sized as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        steps.*,
        (max(steps.step) over (partition by run) + $points - 1) // $points as width
    from steps
    join scope($study, $run) as runs using (run)
)
select
    study,
    arm,
    seed,
    run,
    min(step) as first_step,
    max(step) as last_step,
    avg(reward) as reward,
    avg(entropy) as entropy,
    avg(length) as length,
    avg(ratio_mean_replayed) as ratio,
    avg(buffer_questions) as buffer_questions
from sized
group by study, arm, seed, run, (step - 1) // width
order by study, arm, seed, run, first_step
