-- purpose: On which questions of a benchmark does arm A do better than arm B?
-- grain: a seed (a pair of runs of one study) and a question that both answered; seeds are kept, for a bootstrap over seeds and questions. A run without a seed, like the base model, pairs with every seed
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param arm_a text: the arm
-- param arm_b text: the arm that it is compared with
-- param benchmark text: the benchmark
-- param step integer >= 0 = null: step of the checkpoints; of each run its last evaluated one if null
-- column study: study
-- column seed: seed of the pair; null if neither has one
-- column run_a: run of arm A
-- column run_b: run of arm B
-- column question: question id
-- column level: the question's level
-- column samples_a: graded samples of A
-- column samples_b: graded samples of B
-- column accuracy_a: right of them [share]
-- column accuracy_b: right of them [share]
-- column difference: accuracy of A minus that of B; null where one has no graded sample [share]
with asked as materialized (
    -- Worked out first, so that an unknown name is an error even where nothing is left to join.
    select
        known_benchmark($benchmark, $study, $run) as benchmark,
        known_arm($arm_a, $benchmark, $study, $run) as arm_a,
        if(
            $arm_a = $arm_b,
            error('arm_a and arm_b are both ' || $arm_a),
            known_arm($arm_b, $benchmark, $study, $run)
        ) as arm_b
),
answers as (
    select
        runs.study,
        runs.arm,
        runs.seed,
        evaluations.run,
        evaluations.step,
        evaluations.question,
        max(evaluations.level) as level,
        count(evaluations.correct) as samples,
        avg(evaluations.correct::int) as accuracy
    from evaluations
    join scope($study, $run) as runs using (run)
    join asked on evaluations.benchmark = asked.benchmark
    where runs.arm in (asked.arm_a, asked.arm_b)
    group by runs.study, runs.arm, runs.seed, evaluations.run, evaluations.step, evaluations.question
    qualify evaluations.step = coalesce(
        $step, max(evaluations.step) over (partition by evaluations.run)
    )
)
select
    a.study,
    coalesce(a.seed, b.seed) as seed,
    a.run as run_a,
    b.run as run_b,
    a.question,
    coalesce(a.level, b.level) as level,
    a.samples as samples_a,
    b.samples as samples_b,
    a.accuracy as accuracy_a,
    b.accuracy as accuracy_b,
    a.accuracy - b.accuracy as difference
from asked
join answers as a on a.arm = asked.arm_a
join answers as b
    on b.arm = asked.arm_b
    and a.study = b.study
    and a.question = b.question
    and coalesce(a.seed = b.seed, true)
order by a.study, seed, run_a, run_b, a.question
