"""The objective's pure functions: public cases, single rules, and random batches.

Random batches are compared with the slow reference, and its slopes with finite differences. Whole
trainings of every arm: `test_exactness.py`.
"""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from reference import Logged, group_advantages, masked, sequence_part, token_share

from exgrpo import objective
from exgrpo.batch import Outcome, learns
from exgrpo.objective import (
    Divisor,
    TokenBatch,
    advantages,
    divergence,
    loss,
    surrogate,
    token_shares,
)
from exgrpo.settings import Objective, RunSettings

NAN = math.nan


def plain(rewards: list[list[float]], **settings: Any) -> list[list[float]]:
    """Advantages where nothing is replayed."""
    table = torch.tensor(rewards)
    return advantages(table, torch.zeros_like(table) > 0, Objective(**settings)).tolist()


# ---- public cases ----


@pytest.mark.parametrize("standardise", [False, True])
def test_o01_equal_rewards_have_no_advantage_and_count_as_no_signal(standardise: bool) -> None:
    rewards = [[1.0, 1, 1, 1], [0, 0, 0, 0]]
    assert plain(rewards, standardise=standardise) == [[0.0] * 4] * 2
    settings = RunSettings(study="s", arm="a", seed=0)
    outcomes = [Outcome(int(sum(group)), len(group)) for group in rewards]
    assert [each.solved for each in outcomes] == [True, False]
    assert [each.failed for each in outcomes] == [False, True]
    assert not any(learns(each, settings) for each in outcomes)


def test_o03_the_mean_is_the_group_s_not_the_batch_s() -> None:
    assert plain([[1.0, 1, 0, 0], [1, 0, 0, 0]]) == [
        [0.5, 0.5, -0.5, -0.5],
        [0.75, -0.25, -0.25, -0.25],
    ]


def test_o11_a_replayed_reward_counts_in_the_group_s_mean() -> None:
    rewards = torch.tensor([[1.0, 1, 0, 0, 0, 0, 0, 0]])
    replayed = torch.tensor([[True] + [False] * 7])
    assert advantages(rewards, replayed, Objective()).tolist() == [[0.75] * 2 + [-0.25] * 6]


@pytest.mark.parametrize("replayed", [False, True])
def test_o13_the_ratio_is_taken_token_by_token_not_summed(replayed: bool) -> None:
    """A hundred tokens, each log-probability 0.01 higher than when it was sampled."""
    result = surrogate(token_batch([0.01] * 100, replayed=replayed), Objective(), "none")
    torch.testing.assert_close(result.ratio, torch.full((100,), 1.0100502, dtype=torch.float64))


def token_batch(
    differences: list[float], advantage: float = 1.0, replayed: bool = False
) -> TokenBatch:
    """Tokens of one trajectory whose log-probability has changed by so much, each of share 1."""
    change = torch.tensor(differences, dtype=torch.float64)
    behaviour = torch.full_like(change, -1.0)
    return TokenBatch(
        logprobs=(behaviour + change).requires_grad_(),
        denominator_logprobs=behaviour,
        previous_logprobs=behaviour,
        reference_logprobs=None,
        advantages=torch.full_like(change, advantage),
        replayed=torch.full_like(change, replayed, dtype=torch.bool),
        correction=torch.ones_like(change),
        share=torch.ones_like(change),
    )


# ---- advantages ----


def test_an_ungraded_trajectory_leaves_its_group() -> None:
    first, second = plain([[1.0, 0.0, NAN, 0.0], [NAN] * 4])
    assert first == pytest.approx([2 / 3, -1 / 3, 0.0, -1 / 3])
    assert second == [0.0] * 4


def test_standard_deviation_as_in_verl() -> None:
    """Rewards 1, 0, 0, 0: deviation from the mean with n - 1 is 0.5; a lone one has none."""
    assert plain([[1.0, 0, 0, 0]], standardise=True)[0] == pytest.approx(
        [1.5] + [-0.5] * 3, rel=1e-5
    )
    assert plain([[1.0, NAN, NAN, NAN]], standardise=True) == [[0.0] * 4]


def test_apart_fresh_and_replayed_ones_are_two_groups() -> None:
    rewards = torch.tensor([[1.0, 1.0, 0.0, 0.0, 0.0, 1.0]])
    replayed = torch.tensor([[True, True, True, False, False, False]])
    apart = advantages(rewards, replayed, Objective(baseline="apart")).tolist()[0]
    assert apart == pytest.approx([1 / 3, 1 / 3, -2 / 3, -1 / 3, -1 / 3, 2 / 3])


rewards_of_groups = st.integers(2, 9).flatmap(
    lambda places: st.lists(
        st.lists(
            st.tuples(st.sampled_from([0.0, 1.0, NAN]), st.booleans()),
            min_size=places,
            max_size=places,
        ),
        min_size=1,
        max_size=4,
    )
)


@given(rewards_of_groups, st.booleans(), st.sampled_from(["joint", "apart"]))
def test_advantages_equal_the_slow_reference(
    groups: list[list[tuple[float, bool]]], standardise: bool, baseline: Any
) -> None:
    rules = Objective(standardise=standardise, baseline=baseline)
    rewards, replayed = (
        torch.tensor([[member[part] for member in group] for group in groups]) for part in (0, 1)
    )
    found = advantages(rewards.double(), replayed, rules)
    for group, values in zip(groups, found.tolist(), strict=True):
        slow = group_advantages([r for r, _ in group], [stored for _, stored in group], rules)
        assert values == pytest.approx(slow, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("difficulty", [None, "easy", "medium", "hard"])
def test_masked_grpo_learns_from_one_difficulty_alone(difficulty: Any) -> None:
    """At K = 8; a group without signal is of none."""
    rules = Objective(difficulty=difficulty)
    settings = RunSettings(study="s", arm="a", seed=0, objective=rules)
    for k in range(9):
        assert learns(Outcome(k, 8), settings) is (0 < k < 8 and not masked(k, rules))


# ---- shaping and clip ----

# w -> beta w / (w + beta)^2 at beta 0.1, from the facts (1.8)
FACTORS = {0.01: 0.083, 0.05: 0.222, 0.1: 0.25, 0.2: 0.222, 0.5: 0.139, 0.8: 0.099, 1.0: 0.083,
           2.0: 0.045, 5.0: 0.019}  # fmt: skip


def test_gradient_factor_of_shaping_is_that_of_the_facts() -> None:
    batch = token_batch([math.log(w) for w in FACTORS], replayed=True)
    result = surrogate(batch, Objective(), "none")
    result.value.sum().backward()
    assert batch.logprobs.grad is not None
    assert batch.logprobs.grad.tolist() == pytest.approx(list(FACTORS.values()), abs=6e-4)
    assert result.weight.max() < 1
    assert result.weight[list(FACTORS).index(1.0)] == pytest.approx(1 / 1.1)


def test_shaping_is_for_replayed_tokens_and_may_be_a_constant_or_none() -> None:
    batch = token_batch([math.log(2.0)], replayed=True)
    for rules, weight in (
        (Objective(shaping="none"), 2.0),
        (Objective(shaping="constant", constant=0.083), 0.166),
        (Objective(shaping="ratio", beta=0.5), 0.8),
    ):
        assert surrogate(batch, rules, "none").weight.item() == pytest.approx(weight)
        fresh = surrogate(token_batch([math.log(2.0)]), rules, "none")
        assert fresh.weight.item() == pytest.approx(2.0)


@pytest.mark.parametrize("clip", ["none", "fresh", "all"])
@pytest.mark.parametrize("replayed", [False, True])
def test_the_clip_acts_only_where_the_objective_would_leave_the_trust_region(
    clip: Any, replayed: bool
) -> None:
    rules = Objective(shaping="none", clip_low=0.2, clip_high=0.28)
    acts = clip == "all" or (clip == "fresh" and not replayed)
    for ratio, advantage, outside in (
        (0.5, 1.0, False), (0.5, -1.0, True), (1.5, 1.0, True), (1.5, -1.0, False),
        (1.25, 1.0, False), (1.0, 1.0, False),
    ):  # fmt: skip
        batch = token_batch([math.log(ratio)], advantage, replayed)
        result = surrogate(batch, rules, clip)
        result.value.sum().backward()
        assert result.clipped.item() is (acts and outside)
        bounded = min(max(ratio, 0.8), 1.28) if acts and outside else ratio
        assert result.weight.item() == pytest.approx(bounded)
        slope = 0.0 if acts and outside else ratio * advantage
        assert batch.logprobs.grad is not None
        assert batch.logprobs.grad.item() == pytest.approx(slope)


# ---- the loss ----


def test_normalisers() -> None:
    """Two responses of 2 and 6 tokens, all of value 1, limit 10: what each token counts."""
    expected = {
        "constant": [1 / 20, 1 / 20],
        "constant_sum": [1 / 10, 1 / 10],
        "sequence": [1 / 4, 1 / 12],
        "token": [1 / 8, 1 / 8],
    }
    for normaliser, shares in expected.items():
        rules = Objective(normaliser=normaliser)
        assert token_shares([2, 6], rules, Divisor(2, 8), 10) == pytest.approx(shares)
        assert [token_share(n, 2, 8, 10, rules) for n in (2, 6)] == pytest.approx(shares)


def test_divergence_is_zero_and_flat_where_the_policies_are_equal_and_never_negative() -> None:
    same = torch.tensor([-1.0, -3.0], dtype=torch.float64, requires_grad=True)
    divergence(same, same.detach()).sum().backward()
    assert same.grad is not None
    assert same.grad.abs().max() < 1e-15
    other = torch.linspace(-6, -0.1, 40)
    assert (divergence(torch.full_like(other, -2.0), other) >= 0).all()


nats = st.floats(-4, -1e-3)
trajectories = st.lists(
    st.tuples(
        st.lists(st.tuples(nats, nats, nats, nats), min_size=1, max_size=5),
        st.floats(-0.9, 0.9),
        st.booleans(),
    ),
    min_size=1,
    max_size=5,
)
rules_of_the_loss = st.builds(
    Objective,
    denominator=st.sampled_from(["recorded", "current"]),
    shaping=st.sampled_from(["ratio", "constant", "none"]),
    beta=st.sampled_from([0.1, 0.5]),
    clip_low=st.sampled_from([0.2, 0.5]),
    clip_high=st.sampled_from([0.2, 0.28]),
    normaliser=st.sampled_from(["constant", "constant_sum", "sequence", "token"]),
    kl_reference=st.sampled_from([0.0, 0.1]),
    kl_previous=st.sampled_from([0.0, 0.3]),
    entropy_bonus=st.just(0.0),
)
clips = st.sampled_from(["none", "fresh", "all"])
Trajectories = list[tuple[list[tuple[float, float, float, float]], float, bool]]


def fast(rows: Trajectories, rules: Objective, clip: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The loss of one update, and the log-probabilities that it has a gradient for."""
    lengths = [len(tokens) for tokens, *_ in rows]
    columns = torch.tensor([token for tokens, *_ in rows for token in tokens], dtype=torch.float64)
    now, recorded, previous, reference = columns.unbind(-1)
    now.requires_grad_()
    replayed = torch.tensor([stored for tokens, _, stored in rows for _ in tokens])
    fresh_or_current = ~replayed | (rules.denominator == "current")
    shares = token_shares(lengths, rules, Divisor(len(rows), sum(lengths)), 7)
    batch = TokenBatch(
        logprobs=now,
        denominator_logprobs=torch.where(fresh_or_current, previous, recorded),
        previous_logprobs=previous,
        reference_logprobs=reference if rules.kl_reference else None,
        advantages=torch.tensor([a for tokens, a, _ in rows for _ in tokens], dtype=torch.float64),
        replayed=replayed,
        correction=torch.ones_like(previous),
        share=torch.tensor(shares, dtype=torch.float64).repeat_interleave(torch.tensor(lengths)),
    )
    value = surrogate(batch, rules, clip).value
    return loss(value, batch, torch.zeros_like(now), sum(lengths), rules), now


def slow(rows: Trajectories, rules: Objective, clip: str) -> tuple[float, np.ndarray]:
    """The same by the reference, with its slopes."""
    tokens = sum(len(inside) for inside, *_ in rows)
    parts = []
    for inside, advantage, replayed in rows:
        now, recorded, previous, reference = np.array(inside).T
        logged = Logged(
            now, recorded if replayed else previous, previous, reference, advantage, replayed
        )
        parts.append(
            sequence_part(
                logged, token_share(len(inside), len(rows), tokens, 7, rules), clip, rules
            )
        )
    return sum(part.loss for part in parts), np.concatenate([part.slopes for part in parts])


@given(trajectories, rules_of_the_loss, clips)
def test_loss_and_gradient_equal_the_slow_reference(
    rows: Trajectories, rules: Objective, clip: Any
) -> None:
    value, now = fast(rows, rules, clip)
    value.backward()
    expected, slopes = slow(rows, rules, clip)
    assert value.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert now.grad is not None
    np.testing.assert_allclose(now.grad, slopes, rtol=1e-9, atol=1e-12)


@given(trajectories, rules_of_the_loss, clips)
def test_slopes_of_the_reference_equal_finite_differences(
    rows: Trajectories, rules: Objective, clip: str
) -> None:
    step = 1e-6
    for inside, *_ in rows:  # at a kink of the clip there is no derivative
        for now, recorded, previous, _ in inside:
            for ratio in (math.exp(now - recorded), math.exp(now - previous)):
                bounds = (1 - rules.clip_low, 1 + rules.clip_high)
                assume(all(abs(ratio - bound) > 1e-3 for bound in bounds))
    _, slopes = slow(rows, rules, clip)
    moved = [
        [slow(shifted(rows, place, by), rules, clip)[0] for by in (step, -step)]
        for place in range(len(slopes))
    ]
    for slope, (above, below) in zip(slopes, moved, strict=True):
        assert slope == pytest.approx((above - below) / (2 * step), rel=1e-5, abs=1e-7)


def shifted(rows: Trajectories, place: int, by: float) -> Trajectories:
    """The rows with the log-probability now of their place-th token changed."""
    changed: Trajectories = []
    for tokens, *rest in rows:
        inside = [
            (token[0] + by * (place == index), *token[1:]) for index, token in enumerate(tokens)
        ]
        place -= len(tokens)
        changed.append((inside, *rest))  # type: ignore[arg-type]
    return changed


def test_the_entropy_bonus_is_a_token_mean_over_the_update() -> None:
    batch = token_batch([0.0, 0.0], advantage=0.0)
    entropies = torch.tensor([1.0, 3.0], dtype=torch.float64)
    value = loss(torch.zeros(2), batch, entropies, tokens=8, objective=Objective(entropy_bonus=0.1))
    assert value.item() == pytest.approx(-0.1 * 4 / 8)


def test_a_penalty_gives_a_trajectory_without_advantage_a_gradient() -> None:
    assert not objective.has_penalty(Objective(entropy_bonus=0.0))
    for name in ("entropy_bonus", "kl_reference", "kl_previous"):
        assert objective.has_penalty(Objective(**{"entropy_bonus": 0.0, name: 0.1}))
