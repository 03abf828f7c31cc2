"""A base model that knows some of its questions: with successes and failures in every group."""

import random
from pathlib import Path

import torch

from exgrpo import chain, questions
from exgrpo.policy import TokenSequence, load_policy, save_policy, score_tokens
from exgrpo.settings import Questions

QUESTIONS = Questions(
    train=4, validation=1, test_id=1, test_ood=1, max_level=2, max_ood_level=3
).model_dump()
WRONG = (0.1, 0.3, 0.5, 0.7)  # share of wrong steps in the lessons on every fourth question


def teach(base: str, folder: Path) -> None:
    """Save to `folder` the base model after lessons on its first 32 questions.

    Afterwards it nearly always knows the first of four, and the others less and less.
    """
    model, tokenizer = load_policy(base)
    asked = questions.make_splits(Questions.model_validate({**QUESTIONS, "train": 32}))["train"]
    rng = random.Random(0)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(150):
        lesson = []
        for index, question in enumerate(asked):
            wrong = WRONG[index % 4]
            answer = chain.demonstrate(question.text, rng, wrong, 0.3, 1 - wrong)
            ids = tokenizer(answer, add_special_tokens=False).input_ids
            prompt = tokenizer(question.text).input_ids
            lesson.append(TokenSequence(prompt, [*ids, tokenizer.eos_token_id]))
        optimiser.zero_grad()
        (-score_tokens(model, lesson, 1.0).logprobs.mean()).backward()
        optimiser.step()
    save_policy(model, tokenizer, folder)
