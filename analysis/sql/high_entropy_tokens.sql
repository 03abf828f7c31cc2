-- purpose: Which tokens carry the highest fifth of the entropies, in right and in wrong responses?
-- grain: an arm of a study, right or wrong responses, and a token
-- param study text = null: the study; all if null
-- param run text[] = null: runs; all if null
-- param replayed boolean = false: of replayed trajectories instead of fresh ones
-- param top integer >= 1 = 20: tokens for each arm and correctness, those with most places in the highest fifth
-- column study: study
-- column arm: arm
-- column correct: in responses graded right; null: ungraded
-- column tokenizer: hash of the tokenizer
-- column token_id: token id
-- column text: the token's text
-- column tokens: how often it occurs with a logged entropy [token]
-- column high: of those, entropy in the highest fifth of its run [token]
-- column high_share: high of tokens; 0.2 for a token like all others [share]
-- column carried_share: of all places in the highest fifth, those of this token [share]
-- column occurrence_share: of all places, those of this token [share]
-- column mean_entropy: its mean entropy [nat/token]
with totals as (
    select
        runs.study,
        runs.arm,
        token_totals.correct,
        runs.tokenizer,
        token_totals.token_id,
        sum(token_totals.tokens)::bigint as tokens,
        sum(token_totals.high)::bigint as high,
        sum(token_totals.summed_entropy) as summed_entropy
    from token_totals
    join scope($study, $run) as runs using (run)
    where token_totals.replayed = $replayed
    group by all
)
select
    study,
    arm,
    correct,
    tokenizer,
    token_id,
    vocabulary.text,
    tokens,
    high,
    high / tokens as high_share,
    high / sum(high) over arms as carried_share,
    tokens / sum(tokens) over arms as occurrence_share,
    summed_entropy / tokens as mean_entropy
from totals
left join vocabulary using (tokenizer, token_id)
window arms as (partition by study, arm, correct, tokenizer)
qualify
    high > 0
    and row_number() over (
        partition by study, arm, correct, tokenizer order by high desc, token_id
    ) <= $top
order by study, arm, correct, tokenizer, high desc, token_id
