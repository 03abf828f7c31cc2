-- purpose: How many questions of a mini-batch does each difficulty of Masked GRPO learn from?
-- grain: a difficulty
-- column difficulty: easy, medium or hard
-- column questions: questions of a mini-batch, mean
-- column share: of the 64 of a mini-batch; each is of a run of its own, so they need not add up to 1 [share]
select difficulty, questions, questions / 64 as share
from masked_questions
order by difficulty
