"""The loss against a slow reference from the formula, its gradient against finite differences."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from exgrpo.objective import TokenBatch, group_advantages, loss, shape, surrogate


def test_advantages_of_the_public_cases() -> None:
    """Cases o01, o03, o11: the group's mean, no deviation; equal rewards carry no signal."""
    rewards = torch.tensor([[1.0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0], [1, 0, 0, 0]])
    assert group_advantages(rewards).tolist() == [
        [0, 0, 0, 0], [0, 0, 0, 0], [0.5, 0.5, -0.5, -0.5], [0.75, -0.25, -0.25, -0.25],
    ]  # fmt: skip
    replayed_and_seven = torch.tensor([[1.0, 1, 0, 0, 0, 0, 0, 0]])
    assert group_advantages(replayed_and_seven).tolist() == [[0.75] * 2 + [-0.25] * 6]


def test_an_ungraded_trajectory_leaves_its_group() -> None:
    rewards = torch.tensor([[1.0, 0.0, math.nan, 0.0], [math.nan] * 4])
    advantages = group_advantages(rewards)
    torch.testing.assert_close(advantages[0], torch.tensor([2 / 3, -1 / 3, 0.0, -1 / 3]))
    assert advantages[1].tolist() == [0, 0, 0, 0]


def test_shaping_factor_of_the_facts() -> None:
    """w * f'(w) at beta 0.1: the gradient factor of a replayed token."""
    for w, factor in [(0.01, 0.083), (0.1, 0.25), (0.5, 0.139), (1.0, 0.083), (5.0, 0.019)]:
        ratio = torch.tensor(w, requires_grad=True)
        shape(ratio, 0.1).backward()
        assert ratio.grad is not None
        assert w * ratio.grad.item() == pytest.approx(factor, abs=6e-4)
    assert shape(torch.tensor(1.0), 0.1).item() == pytest.approx(1 / 1.1)


def test_ratio_is_per_token_not_summed() -> None:
    """Case o13: a hundred tokens of difference 0.01 have ratio e^0.01 each."""
    batch = TokenBatch(
        torch.full((100,), -1.0), torch.full((100,), -1.01), torch.ones(100), torch.ones(100) > 0
    )
    torch.testing.assert_close(surrogate(batch, None, 0.1).ratio, torch.full((100,), 1.0100502))


rows = st.lists(
    st.tuples(
        st.floats(-3, 0), st.floats(-3, 0), st.floats(-0.9, 0.9), st.booleans(), st.integers(1, 5)
    ),
    min_size=1,
    max_size=6,
)


def _slow_loss(rows: list, clip: float | None, beta: float, bonus: float) -> float:
    """Equation 4 written out token by token in plain Python."""
    total, tokens = 0.0, sum(row[4] for row in rows)
    for new, old, advantage, replayed, length in rows:
        for _ in range(length):
            w = math.exp(new - old)
            if replayed:
                term = w / (w + beta) * advantage
            elif clip is None:
                term = w * advantage
            else:
                term = min(w * advantage, min(max(w, 1 - clip), 1 + clip) * advantage)
            total -= term / (len(rows) * 7)
            total -= bonus * abs(new) / tokens
    return total


def _fast_loss(rows: list, new: torch.Tensor, clip: float | None) -> torch.Tensor:
    lengths = torch.tensor([row[4] for row in rows])

    def column(index: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
        values = torch.tensor([row[index] for row in rows], dtype=dtype)
        return values.repeat_interleave(lengths)

    batch = TokenBatch(new.repeat_interleave(lengths), column(1), column(2), column(3, torch.bool))
    entropies = batch.logprobs.abs()
    value = surrogate(batch, clip, 0.1).value
    return loss(value, entropies, len(rows), 7, int(lengths.sum()), 0.01)


@given(rows, st.sampled_from([None, 0.2]))
def test_loss_equals_the_slow_reference(rows: list, clip: float | None) -> None:
    new = torch.tensor([row[0] for row in rows], dtype=torch.float64)
    assert _fast_loss(rows, new, clip).item() == pytest.approx(
        _slow_loss(rows, clip, 0.1, 0.01), abs=1e-9
    )


@given(rows, st.sampled_from([None, 0.2]))
def test_gradient_equals_finite_differences(rows: list, clip: float | None) -> None:
    ratios = [math.exp(row[0] - row[1]) for row in rows]
    if (clip and any(abs(abs(w - 1) - clip) < 1e-4 for w in ratios)) or any(
        r[0] > -1e-4 for r in rows
    ):
        return  # at a kink the derivative does not exist
    new = torch.tensor([row[0] for row in rows], dtype=torch.float64, requires_grad=True)
    _fast_loss(rows, new, clip).backward()
    assert new.grad is not None
    for index in range(len(rows)):
        step = torch.zeros_like(new)
        step[index] = 1e-6
        with torch.no_grad():
            rise = _fast_loss(rows, new + step, clip) - _fast_loss(rows, new - step, clip)
        assert new.grad[index].item() == pytest.approx(rise.item() / 2e-6, abs=1e-6)


def test_clip_removes_gradient_only_where_the_objective_would_leave_the_trust_region() -> None:
    ratio = torch.tensor([0.5, 0.5, 1.5, 1.5, 1.0])
    advantages = torch.tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    batch = TokenBatch(ratio.log(), torch.zeros(5), advantages, torch.zeros(5) > 0)
    assert surrogate(batch, 0.2, 0.1).clipped.tolist() == [False, True, True, False, False]
    assert not surrogate(batch, None, 0.1).clipped.any()


def test_replayed_tokens_are_never_clipped() -> None:
    batch = TokenBatch(
        torch.tensor([0.0, -3.0]), torch.tensor([-2.0, 0.0]), torch.ones(2), torch.ones(2) > 0
    )
    result = surrogate(batch, 0.2, 0.1)
    assert not result.clipped.any()
    torch.testing.assert_close(result.weight, shape(result.ratio, 0.1))
