"""Where another engine samples: what each token's ratio stands over, its correction, its clip.

Beside the whole trainings of `test_traps_sampler.py`: numbers by hand, from rows of a batch on.
"""

import dataclasses
import math
from typing import get_args

import numpy as np
import pytest
import torch
from watched import little

from exgrpo.batch import Group, Row, fresh_row
from exgrpo.grading import Verdict
from exgrpo.objective import Divisor, TokenBatch, sampler_correction, sampler_ratio, surrogate
from exgrpo.policy import TokenScores
from exgrpo.questions import Question
from exgrpo.rollout import Rollout
from exgrpo.sampling import Sampled
from exgrpo.settings import Clip, Objective
from exgrpo.update import token_batch

# Of four fresh tokens and two replayed ones: the sampler's, and how far the trainer is from it.
BEHAVIOUR = np.array([-1.0, -1.0, -1.0, -1.0, -4.0, -4.0])
APART = np.array([0.0, 0.1, -0.2, math.log(5), 0.0, math.log(5)])
PREVIOUS = BEHAVIOUR + APART
CLIPS = get_args(Clip)  # none, fresh, all
SINCE = 0.01  # that the policy has moved since the step began, of every token


def row(behaviour: np.ndarray, previous: np.ndarray) -> Row:
    """A fresh row of advantage 1, sampled by the one and scored by the other."""
    question = Question("1+1", "2", 1, "chain", prompt_ids=(1, 4))
    rollout = Rollout([3] * len(previous), behaviour, None, "length")
    scores = TokenScores(torch.from_numpy(previous), torch.zeros(len(previous)))
    sampled = Sampled(rollout, "", Verdict(True, "2", True, ""))
    made = fresh_row("r", 1, 0, 0, Group(question), sampled, scores)
    return dataclasses.replace(made, advantage=1.0)


def batch(**rules: object) -> TokenBatch:
    fresh, other = (row(BEHAVIOUR[part], PREVIOUS[part]) for part in (slice(4), slice(4, 6)))
    rows = [fresh, dataclasses.replace(other, source="r:0:0:0", birth_step=0)]
    now = TokenScores(torch.from_numpy(PREVIOUS + SINCE), torch.zeros(6))
    return token_batch(rows, now, little(objective=rules), Divisor(2, 6), None)


def test_a_fresh_token_s_correction_is_trainer_over_sampler_and_a_replayed_one_s_is_1() -> None:
    found = batch(sampler_cap=2.0).correction
    by_hand = [1, math.exp(0.1), math.exp(-0.2), 2, 1, 1]
    assert found.tolist() == pytest.approx(by_hand, rel=1e-12)
    assert (batch(sampler_correction="none").correction == 1).all()


@pytest.mark.parametrize(
    ("denominator", "replayed", "clipped"),
    [("recorded", BEHAVIOUR, [5]), ("current", PREVIOUS, [])],
)
def test_a_ratio_stands_over_the_trainer_s_where_fresh_and_where_replayed_as_is_set(
    denominator: str, replayed: np.ndarray, clipped: list[int]
) -> None:
    """The correction is beside it: what is logged and clipped is the ratio alone."""
    rules = Objective(shaping="none", clip_low=0.2, clip_high=0.2)
    made = batch(denominator=denominator, sampler_cap=2.0)
    over = np.concatenate([PREVIOUS[:4], replayed[4:]])
    by_hand = np.exp(PREVIOUS + SINCE - over).tolist()
    free, fresh, every = (surrogate(made, rules, clip) for clip in CLIPS)
    for found in (free, fresh, every):
        assert found.ratio.tolist() == pytest.approx(by_hand, rel=1e-12)
    value = np.multiply(by_hand, [1, math.exp(0.1), math.exp(-0.2), 2, 1, 1]).tolist()
    assert free.value.tolist() == pytest.approx(value, rel=1e-12)
    # A replayed ratio of 5 is outside the clip; a fresh one of 1 beside a correction of 2 is not.
    assert not free.clipped.any() and not fresh.clipped.any()
    assert every.clipped.nonzero()[:, 0].tolist() == clipped


def test_an_impossible_token_is_capped_and_a_masked_out_difference_is_not_worked_out() -> None:
    """A replayed token's difference may be anything: it is not exponentiated."""
    previous, behaviour = torch.tensor([0.0, 0.0]), torch.tensor([-1e10, -1e10])
    ratio = sampler_ratio(previous, behaviour, torch.tensor([False, True]))
    assert sampler_correction(ratio, Objective(sampler_cap=2.0)).tolist() == [2.0, 1.0]
