"""Trap 37: what the normalisers are called elsewhere, and the number that each gives by hand.

The names are those of the table in docs/scale.md.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from test_ends import row
from watched import little

from exgrpo import objective
from exgrpo.batch import Row
from exgrpo.objective import Divisor
from exgrpo.policy import TokenScores, TokenSequence
from exgrpo.update import token_batch

# An update of two responses: 2 tokens of advantage 0.75, 6 of -0.25; limit 10, ratio 1 throughout.
LENGTHS, ADVANTAGES, LIMIT = (2, 6), (0.75, -0.25), 10
BY_HAND = {
    "sequence": -(0.75 - 0.25) / 2,  # mean over responses of the mean over tokens
    "token": -(2 * 0.75 - 6 * 0.25) / 8,  # mean over all tokens: they cancel out
    "constant": -(2 * 0.75 - 6 * 0.25) / (2 * LIMIT),
    "constant_sum": -(2 * 0.75 - 6 * 0.25) / LIMIT,
}
# What one token of the longer response pulls at: d loss / d log p.
SLOPES = {
    "sequence": 0.25 / (2 * 6),
    "token": 0.25 / 8,
    "constant": 0.25 / (2 * LIMIT),
    "constant_sum": 0.25 / LIMIT,
}


def rows() -> list[Row]:
    made = []
    for length, advantage in zip(LENGTHS, ADVANTAGES, strict=True):
        values = np.full(length, -1.0)
        made.append(
            dataclasses.replace(
                row(),
                sequence=TokenSequence([1], [4] * length),
                behaviour_logprobs=values,
                previous_logprobs=values,
                entropies=values,
                advantage=advantage,
            )
        )
    return made


def loss_of(part: list[Row], divisor: Divisor, normaliser: Any) -> tuple[float, list[float]]:
    """The part's loss and its slopes, by the functions that the trainer calls."""
    rules: dict[str, Any] = {"normaliser": normaliser, "entropy_bonus": 0.0}
    settings = little(objective=rules, rollout={"max_new_tokens": LIMIT})
    tokens = sum(len(each.sequence.response_ids) for each in part)
    now = torch.full((tokens,), -1.0, dtype=torch.float64, requires_grad=True)
    inputs = token_batch(part, TokenScores(now, torch.zeros(tokens)), settings, divisor, None)
    value = objective.surrogate(inputs, settings.objective, "none").value
    loss = objective.loss(value, inputs, torch.zeros(tokens), divisor.tokens, settings.objective)
    loss.backward()
    assert now.grad is not None
    return loss.item(), now.grad.tolist()


@pytest.mark.parametrize("normaliser", BY_HAND)
def test_trap_37_each_normaliser_gives_the_number_by_hand(normaliser: str) -> None:
    value, slopes = loss_of(rows(), Divisor(2, 8), normaliser)
    assert value == pytest.approx(BY_HAND[normaliser], abs=1e-15)
    assert slopes[2:] == pytest.approx([SLOPES[normaliser]] * 6)


@pytest.mark.parametrize("normaliser", BY_HAND)
def test_trap_37_no_normaliser_depends_on_the_micro_batches(normaliser: str) -> None:
    """Unlike TRL's `bnpo`, a mean over the tokens of a micro-batch: 0 at once, -0.5 in two."""
    whole = loss_of(rows(), Divisor(2, 8), normaliser)[0]
    parts = [loss_of([each], Divisor(2, 8), normaliser)[0] for each in rows()]
    assert sum(parts) == pytest.approx(whole, abs=1e-15)
    bnpo = [
        loss_of([each], Divisor(1, n), "token")[0] for each, n in zip(rows(), LENGTHS, strict=True)
    ]
    assert sum(bnpo) == pytest.approx(-0.5) and loss_of(rows(), Divisor(2, 8), "token")[0] == 0
