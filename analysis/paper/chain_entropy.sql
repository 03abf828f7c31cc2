-- purpose: How far apart are valid and flawed chains of right answers, by entropy and perplexity?
-- grain: a measure and a difficulty
-- column measure: entropy or perplexity
-- column difficulty: easy, medium or hard
-- column valid: mean over answers whose chain the judge took for valid [nat/token for entropy]
-- column flawed: mean over the others [nat/token for entropy]
-- column difference: flawed minus valid, in nat/token for both: perplexity by its logarithm [nat/token]
select
    measure,
    difficulty,
    valid,
    flawed,
    case when measure = 'perplexity' then ln(flawed / valid) else flawed - valid end as difference
from chains
order by measure, difficulty
