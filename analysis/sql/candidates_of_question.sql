-- purpose: Between which stored trajectories did each draw of a question choose, and which did it take?
-- grain: a stored trajectory considered for replay at a step, in the arm's own order
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param question text = null: question id; all if null
-- column study: study
-- column arm: arm
-- column seed: seed of the run
-- column run: run id
-- column question: question id
-- column step: the step of the draw [step]
-- column group: place of the question's group in the batch
-- column source: id of the stored trajectory
-- column birth_step: the step whose policy sampled it [step]
-- column length: response tokens [token]
-- column mean_entropy: under the policy at this step [nat/token]
-- column summed_entropy: under the policy at this step [nat]
-- column nll: mean negative log-probability under the policy at this step [nat/token]
-- column birth_entropy: mean entropy when it was sampled [nat/token]
-- column released: what the released code takes for mean entropy, LUFFY#57 [nat/token]
-- column rank: place by the arm's own order; the first are replayed
-- column chosen: replayed at this step
-- column mean_entropy_rank: place by this metric alone, 0 the lowest
-- column summed_entropy_rank: place by this metric alone, 0 the lowest
-- column nll_rank: place by this metric alone, 0 the lowest
-- column length_rank: place by this metric alone, 0 the lowest
-- column birth_entropy_rank: place by this metric alone, 0 the lowest
-- column released_rank: place by this metric alone, 0 the lowest
select
    runs.study,
    runs.arm,
    runs.seed,
    run,
    candidates.question,
    candidates.step,
    candidates."group",
    candidates.source,
    candidates.birth_step,
    candidates.length,
    candidates.mean_entropy,
    candidates.summed_entropy,
    candidates.nll,
    candidates.birth_entropy,
    candidates.released,
    candidates."rank",
    candidates.chosen,
    candidates.mean_entropy_rank,
    candidates.summed_entropy_rank,
    candidates.nll_rank,
    candidates.length_rank,
    candidates.birth_entropy_rank,
    candidates.released_rank
from candidates
join scope($study, $run) as runs using (run)
where $question is null or candidates.question = $question
order by
    runs.study,
    runs.arm,
    runs.seed,
    run,
    candidates.question,
    candidates.step,
    candidates."group",
    candidates."rank"
