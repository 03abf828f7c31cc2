"""The replay buffer against a slow model, and its draws against the Gaussian weights."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exgrpo.experience import (
    Candidate,
    ReplayBuffer,
    Trajectory,
    bucket_weights,
    draw_questions,
    rank_candidates,
)

K = 8


def _trajectory(question: str, token: int, step: int = 1) -> Trajectory:
    return Trajectory(f"{question}:{step}:{token}", question, [1], [token, 2], [-0.5, -0.1], step)


visits = st.lists(
    st.tuples(
        st.sampled_from("abcdef"), st.integers(0, K), st.lists(st.integers(3, 6), max_size=4)
    ),
    max_size=60,
)


@given(visits)
def test_buffer_equals_a_slow_model(history: list[tuple[str, int, list[int]]]) -> None:
    buffer = ReplayBuffer()
    latest: dict[str, int] = {}
    kept: dict[str, dict[int, int]] = defaultdict(dict)  # question -> token -> first step
    retired: set[str] = set()
    for step, (question, k, tokens) in enumerate(history, start=1):
        right = [_trajectory(question, token, step) for token in tokens] if k else []
        events = buffer.observe(question, k, K, right)
        if question in retired or k == 0:
            assert events == []
            continue
        if k < K and question not in latest and not tokens:
            assert events == []
            continue
        if k == K:
            retired.add(question)
            latest.pop(question, None)
            kept.pop(question, None)
            continue
        latest[question] = k
        for token in tokens:
            kept[question].setdefault(token, step)
        stored = [event for event in events if event.event == "stored"]
        assert len(stored) == len({event.trajectory for event in stored})
    assert buffer.buckets == latest
    assert buffer.retired == retired
    assert {
        question: {each.token_ids[0]: each.birth_step for each in stored}
        for question, stored in buffer.stored.items()
    } == {question: kept[question] for question in latest}
    assert sum(buffer.bucket_sizes(K)) == len(latest)


@given(visits, st.integers(0, 12), st.integers(0, 2**32))
def test_a_restored_buffer_draws_the_same(
    history: list[tuple[str, int, list[int]]], count: int, seed: int
) -> None:
    buffer = ReplayBuffer()
    for question, k, tokens in history:
        buffer.observe(question, k, K, [_trajectory(question, token) for token in tokens])
    again = ReplayBuffer.from_state(buffer.state())
    assert again == buffer
    weights = bucket_weights(K, 0.5, 1.0)
    draws = draw_questions(buffer, count, weights, np.random.default_rng(seed))
    assert draws == draw_questions(again, count, weights, np.random.default_rng(seed))
    assert len(draws) == min(count, len(buffer.buckets))
    assert len({draw.question for draw in draws}) == len(draws)
    assert all(buffer.buckets[draw.question] == draw.bucket for draw in draws)


def test_weights_are_the_table_of_the_facts() -> None:
    def shares(mu: float, sigma: float) -> list[float]:
        weights = bucket_weights(K, mu, sigma)
        return (weights / weights.sum()).round(4).tolist()

    assert shares(0.5, 1.0) == [0.0044, 0.054, 0.242, 0.3991, 0.242, 0.054, 0.0044]
    assert shares(0.5, 1.5) == pytest.approx(
        [0.037, 0.111, 0.217, 0.271, 0.217, 0.111, 0.037], abs=6e-4
    )


def test_single_draws_follow_the_weights_of_non_empty_buckets() -> None:
    """Chi-square over buckets and over the questions inside one; sizes do not matter."""
    buffer = ReplayBuffer()
    for bucket, size in ((2, 1), (3, 4), (4, 30), (6, 2)):
        for index in range(size):
            buffer.buckets[f"{bucket}-{index}"] = bucket
    weights = bucket_weights(K, 0.5, 1.0)
    rng = np.random.default_rng(0)
    draws = [draw_questions(buffer, 1, weights, rng)[0] for _ in range(6000)]
    counts = Counter(draw.bucket for draw in draws)
    total = sum(weights[bucket - 1] for bucket in counts)
    chi_square = sum(
        (counts[b] - 6000 * weights[b - 1] / total) ** 2 / (6000 * weights[b - 1] / total)
        for b in (2, 3, 4, 6)
    )
    assert chi_square < 16.3  # 99.9 % of chi-square with 3 degrees of freedom
    inside = Counter(draw.question for draw in draws if draw.bucket == 3)
    expected = sum(inside.values()) / 4
    assert sum((inside[f"3-{i}"] - expected) ** 2 / expected for i in range(4)) < 16.3


def test_overflow_goes_to_buckets_with_room() -> None:
    buffer = ReplayBuffer({"only": 4, **{f"hard-{i}": 1 for i in range(9)}})
    draws = draw_questions(buffer, 6, bucket_weights(K, 0.5, 1.0), np.random.default_rng(0))
    counts = Counter(draw.bucket for draw in draws)
    assert counts == {4: 1, 1: 5}


def test_choice_of_trajectory() -> None:
    entropies = [0.3, 0.1, 0.2, 0.1]
    candidates = [
        Candidate(_trajectory("a", token), mean, 9 * mean, mean)
        for token, mean in enumerate(entropies)
    ]

    def order(choice: str, seed: int = 0) -> list[int]:
        ranked = rank_candidates(candidates, choice, np.random.default_rng(seed))
        return [candidates.index(candidate) for candidate in ranked]

    assert order("lowest_entropy") == [1, 3, 2, 0]
    assert order("highest_entropy") == [0, 2, 1, 3]
    first = Counter(order("random", seed)[0] for seed in range(800))
    assert all(first[index] == pytest.approx(200, abs=60) for index in range(4))


def test_a_gaussian_too_narrow_for_any_bucket_draws_uniformly() -> None:
    buffer = ReplayBuffer({f"q{i}": 7 for i in range(4)} | {"h": 1})
    weights = bucket_weights(K, 0.5, 0.05)
    assert weights[0] == weights[-1] == 0.0
    draws = draw_questions(buffer, 5, weights, np.random.default_rng(0))
    assert len({draw.question for draw in draws}) == 5
