-- purpose: How do right answers with code differ from those without?
-- grain: a measure and a difficulty
-- column measure: entropy [nat/token] or valid chains [%]
-- column difficulty: easy, medium or hard
-- column without_code: mean over answers without code
-- column with_code: mean over answers with code
-- column difference: with minus without
-- column shortfall: without minus with
select
    measure,
    difficulty,
    without_code,
    with_code,
    with_code - without_code as difference,
    without_code - with_code as shortfall
from code
order by measure, difficulty
