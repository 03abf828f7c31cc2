"""Where another engine samples: the ratio of trainer to sampler, its cap, and what is logged.

Traps 18, 19 and 20. With vLLM itself: `scale/test_vllm_training.py`.
"""

import math

import numpy as np
import pytest
import torch

from exgrpo.batch import Group, Row, fresh_row
from exgrpo.grading import Verdict
from exgrpo.objective import TokenBatch, sampler_correction, sampler_ratio, surrogate
from exgrpo.policy import TokenScores
from exgrpo.questions import Question
from exgrpo.rollout import Rollout
from exgrpo.sampling import Sampled
from exgrpo.settings import Clip, Objective, RunSettings
from exgrpo.step_records import _sampler_gap

BEHAVIOUR = torch.tensor([-1.0, -1.0, -1.0, -1.0, -4.0, -4.0])
APART = torch.tensor([0.0, 0.1, -0.2, math.log(5), 0.0, math.log(5)])  # trainer minus sampler
REPLAYED = torch.tensor([False, False, False, False, True, True])


def batch(rules: Objective, moved: float = 0.0) -> TokenBatch:
    """Four fresh tokens and two replayed ones of advantage 1. moved: of the policy since."""
    previous = BEHAVIOUR + APART
    ratio = sampler_ratio(previous, BEHAVIOUR, REPLAYED)
    return TokenBatch(
        logprobs=(previous + moved).requires_grad_(),
        denominator_logprobs=torch.where(REPLAYED, BEHAVIOUR, previous),
        previous_logprobs=previous,
        reference_logprobs=None,
        advantages=torch.ones(6),
        replayed=REPLAYED,
        correction=sampler_correction(ratio, rules),
        share=torch.ones(6),
    )


def test_the_correction_is_trainer_over_sampler_up_to_the_cap_and_of_fresh_tokens_alone() -> None:
    found = batch(Objective(sampler_cap=2.0)).correction
    torch.testing.assert_close(found, torch.tensor([1, math.exp(0.1), math.exp(-0.2), 2, 1, 1]))
    assert (batch(Objective(sampler_correction="none")).correction == 1).all()


@pytest.mark.parametrize("clip", ["none", "fresh"])
def test_the_gradient_of_a_fresh_token_is_the_correction_times_its_own(clip: Clip) -> None:
    """Trap 20: the correction has no gradient, the policy now is in the ratio alone."""
    rules = Objective(shaping="none")
    corrected, plain = (
        batch(each, moved=0.01)
        for each in (rules, rules.model_copy(update={"sampler_correction": "none"}))
    )
    for each in (corrected, plain):
        surrogate(each, rules, clip).value.sum().backward()
    assert corrected.logprobs.grad is not None and plain.logprobs.grad is not None
    torch.testing.assert_close(
        corrected.logprobs.grad, plain.logprobs.grad * corrected.correction, rtol=1e-6, atol=0
    )
    torch.testing.assert_close(plain.logprobs.grad[:4], torch.full((4,), math.exp(0.01)))
    assert not corrected.correction.requires_grad


def test_the_ratio_that_is_logged_and_clipped_is_without_the_correction() -> None:
    found = surrogate(batch(Objective(shaping="none")), Objective(shaping="none"), "fresh")
    torch.testing.assert_close(found.ratio[:4], torch.ones(4))
    torch.testing.assert_close(found.ratio[4:], torch.tensor([1.0, 5.0]))
    assert not found.clipped.any()


def test_an_impossible_token_is_capped_and_a_masked_out_difference_is_not_worked_out() -> None:
    """A replayed token's difference may be anything: it is not exponentiated."""
    previous, behaviour = torch.tensor([0.0, 0.0]), torch.tensor([-1e10, -1e10])
    ratio = sampler_ratio(previous, behaviour, torch.tensor([False, True]))
    assert sampler_correction(ratio, Objective(sampler_cap=2.0)).tolist() == [2.0, 1.0]


def test_raw_and_capped_are_logged_apart() -> None:
    """Trap 18: the mean ratio is that before the cap, the share says how many it cuts."""
    settings = RunSettings.model_validate(
        {"study": "s", "arm": "a", "seed": 0, "objective": {"sampler_cap": 2.0}}
    )
    previous = (BEHAVIOUR + APART)[:4].double().numpy()
    found = _sampler_gap([row(BEHAVIOUR[:4].double().numpy(), previous)], settings)
    ratios = np.exp(APART[:4].double().numpy())
    assert found["sampler_ratio_mean"] == pytest.approx(ratios.mean(), rel=1e-6)
    assert ratios.mean() > ratios.clip(max=2).mean() + 0.5
    assert found["sampler_capped_share"] == 0.25
    assert found["sampler_gap_max"] == pytest.approx(math.log(5), rel=1e-6)
    assert found["sampler_gap_mean"] == pytest.approx((0.1 + 0.2 + math.log(5)) / 4, rel=1e-6)


def test_a_fresh_row_keeps_both_and_a_wrong_number_of_them_is_an_error() -> None:
    """Trap 26: never cut or filled up to fit."""
    made = row(np.array([-1.0, -2.0]), np.array([-1.5, -2.5]))
    assert made.behaviour_logprobs.tolist() == [-1.0, -2.0]
    assert made.previous_logprobs.tolist() == [-1.5, -2.5]
    with pytest.raises(ValueError, match="1 behaviour_logprobs for 2 tokens"):
        row(np.array([-1.0]), np.array([-1.5, -2.5]))


def row(behaviour: np.ndarray, previous: np.ndarray) -> Row:
    question = Question("1+1", "2", 1, "chain", prompt_ids=(1, 4))
    rollout = Rollout([3] * len(previous), behaviour, None, "length")
    scores = TokenScores(torch.from_numpy(previous), torch.zeros(len(previous)))
    verdict = Verdict(True, "2", True, "")
    return fresh_row("r", 1, 0, 0, Group(question), Sampled(rollout, "", verdict), scores)
