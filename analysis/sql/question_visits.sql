-- purpose: How did a question fare at each of its visits, run by run?
-- grain: a visit of a question in a run
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param question text = null: question id; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column step: training step [step]
-- column group: place of its group in the batch
-- column visit: which visit of the question in its run this is, from 1
-- column right: fresh rollouts graded right [trajectory]
-- column graded: fresh rollouts graded [trajectory]
-- column success_share: right / graded [share]
-- column mean_entropy: mean over the fresh rollouts [nat/token]
-- column successes: k that counts for the bucket, replayed ones included if the arm says so
-- column size: K that counts for the bucket
-- column experiential: the question was drawn from the replay buffer
-- column bucket_drawn: experiential only: bucket that it was drawn from
-- column bucket: k if 0 < k < K, else null
-- column replayed: replayed trajectories in the group [trajectory]
-- column previous_share: success_share of the visit before; null at the first [share]
-- column next_step: step of the next visit; null at the last [step]
-- column next_share: success_share of the next visit [share]
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    visits.question,
    visits.step,
    visits."group",
    visits.visit,
    visits."right",
    visits.graded,
    visits.success_share,
    visits.mean_entropy,
    visits.successes,
    visits.size,
    visits.experiential,
    visits.bucket_drawn,
    visits.bucket,
    visits.replayed,
    visits.previous_share,
    visits.next_step,
    visits.next_share
from visits
join scope($study, $run) as runs using (run)
where $question is null or visits.question = $question
order by runs.study, runs.arm, runs.seed, run, visits.question, visits.step, visits."group"
