-- purpose: Where in the response is the policy unsure, when right and when wrong, fresh and replayed?
-- grain: an arm of a study, fresh or replayed, right or wrong responses, and a tenth of the response
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- column study: study
-- column arm: arm
-- column replayed: of replayed trajectories, else of fresh ones
-- column correct: of trajectories graded right; null: ungraded
-- column tenth: where in the response, 0 (its first tenth) .. 9
-- column runs: runs that have such tokens
-- column tokens: tokens whose entropy was logged [token]
-- column mean_entropy: mean over these tokens [nat/token]
-- column sd_entropy: standard deviation over these tokens [nat/token]
with sums as (
    select
        runs.study,
        runs.arm,
        token_profile.replayed,
        token_profile.correct,
        token_profile.tenth,
        count(*) as runs,
        sum(token_profile.tokens)::bigint as tokens,
        sum(token_profile.summed_entropy) / sum(token_profile.tokens) as mean_entropy,
        sum(token_profile.summed_square) / sum(token_profile.tokens) as mean_square
    from token_profile
    join scope($study, $run) as runs using (run)
    group by all
)
select
    study,
    arm,
    replayed,
    correct,
    tenth,
    runs,
    tokens,
    mean_entropy,
    sqrt(greatest(mean_square - mean_entropy * mean_entropy, 0)) as sd_entropy
from sums
order by study, arm, replayed, correct, tenth
