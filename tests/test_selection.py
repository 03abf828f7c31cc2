"""Question sampling and trajectory choice: closed forms, frequencies, slow references, by hand."""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from candidates import a_candidate, ranked
from hypothesis import given, settings
from hypothesis import strategies as st

from exgrpo.buckets import Buckets
from exgrpo.selection import (
    METRICS,
    bucket_weights,
    draw_questions,
)
from exgrpo.settings import Experience

K = 8

# Facts 1.5 to three decimals, small ones to four. Two cells there, .107 and .122, were rounded
# twice: the Gaussian gives .10645 and .12149.
TABLE = {
    ("count", 1.0): (0.0044, 0.054, 0.242, 0.399, 0.242, 0.054, 0.0044),
    ("count", 0.5): (0.000, 0.0003, 0.106, 0.787, 0.106, 0.0003, 0.000),
    ("count", 1.5): (0.037, 0.111, 0.217, 0.271, 0.217, 0.111, 0.037),
    ("accuracy", 1.0): (0.137, 0.143, 0.146, 0.147, 0.146, 0.143, 0.137),
    ("accuracy", 0.5): (0.121, 0.142, 0.156, 0.161, 0.156, 0.142, 0.121),
    ("accuracy", 1.5): (0.140, 0.143, 0.144, 0.145, 0.144, 0.143, 0.140),
}
ROUNDED = 0.0005


def filled(sizes: dict[int, int]) -> Buckets:
    """Buckets with so many questions each."""
    return Buckets.of_members(
        {bucket: [f"{bucket}-{i}" for i in range(size)] for bucket, size in sizes.items()}
    )


def shares(experience: Experience) -> np.ndarray:
    weights = bucket_weights(K, experience)
    assert weights is not None
    return weights / weights.sum()


def drawn_shares(experience: Experience, sizes: Sequence[int], seed: int = 0) -> np.ndarray:
    """Share of each bucket in 100 000 questions, a hundred at a time from buckets with room."""
    assert min(sizes) >= 100
    buckets = filled(dict(enumerate(sizes, start=1)))
    weights, rng = bucket_weights(K, experience), np.random.default_rng(seed)
    counts: Counter[int] = Counter()
    for _ in range(1000):
        counts.update(each.bucket for each in draw_questions(buckets, 100, weights, rng))
    return np.array([counts[bucket] for bucket in range(1, K)]) / 100_000


def five_sigma(share: Any) -> Any:
    """Five standard errors of a share of 100 000 draws; 1e-4 covers shares near 0."""
    return 5 * np.sqrt(share * (1 - share) / 100_000) + 1e-4


def chi_square(counts: Sequence[int], expected: Sequence[float]) -> float:
    pairs = zip(counts, expected, strict=True)
    return sum((count - mean) ** 2 / mean for count, mean in pairs)


# ---- how many of each bucket ----


@pytest.mark.parametrize("unit, sigma", TABLE)
def test_weights_and_draws_are_the_table_of_the_facts(unit: Any, sigma: float) -> None:
    experience = Experience(sigma=sigma, sigma_unit=unit)
    table = np.array(TABLE[unit, sigma])
    assert np.abs(shares(experience) - table).max() <= ROUNDED
    off = np.abs(drawn_shares(experience, [100, 300, 100, 200, 100, 100, 700]) - table)
    assert (off <= five_sigma(table) + ROUNDED).all()


@pytest.mark.parametrize(
    "experience, weight",
    [
        (Experience(draw="linear"), lambda k: k / K),
        (Experience(draw="sqrt"), lambda k: (k / K) ** 0.5),
        (Experience(draw="uniform"), lambda k: 1.0),
        (Experience(mu=0.25), lambda k: np.exp(-((k - 2) ** 2) / 2)),
    ],
)
def test_other_weights(experience: Experience, weight: Callable[[int], float]) -> None:
    expected = np.array([weight(k) for k in range(1, K)])
    expected /= expected.sum()
    assert shares(experience) == pytest.approx(expected)
    off = np.abs(drawn_shares(experience, [100] * 6 + [500]) - expected)
    assert (off <= five_sigma(expected)).all()


def test_with_draw_questions_every_question_is_as_likely() -> None:
    experience = Experience(draw="questions")
    assert bucket_weights(K, experience) is None
    sizes = [100, 500, 100, 100, 1000, 100, 100]
    expected = np.array(sizes) / sum(sizes)
    assert (np.abs(drawn_shares(experience, sizes) - expected) <= five_sigma(expected)).all()
    rng = np.random.default_rng(0)
    buckets = filled({1: 1, 4: 2, 7: 5})
    drawn = (draw_questions(buckets, 3, None, rng) for _ in range(8000))
    counts = Counter(each.question for draws in drawn for each in draws)
    # 7 degrees of freedom: above 24.3 once in a thousand.
    assert chi_square(list(counts.values()), [3000] * 8) < 24.3


def test_single_draws_follow_the_weights_of_the_filled_buckets_whatever_their_sizes() -> None:
    buckets = filled({2: 1, 3: 4, 4: 30, 6: 2})
    weights, rng = bucket_weights(K, Experience()), np.random.default_rng(0)
    assert weights is not None
    draws = [draw_questions(buckets, 1, weights, rng)[0] for _ in range(6000)]
    counts = Counter(draw.bucket for draw in draws)
    total = weights[[1, 2, 3, 5]].sum()
    expected = [6000 * weights[bucket - 1] / total for bucket in (2, 3, 4, 6)]
    assert chi_square([counts[bucket] for bucket in (2, 3, 4, 6)], expected) < 16.3
    inside = Counter(draw.question for draw in draws if draw.bucket == 3)
    assert chi_square(list(inside.values()), [counts[3] / 4] * 4) < 16.3


def test_within_a_bucket_every_set_of_questions_is_as_likely() -> None:
    buckets, rng = filled({5: 5}), np.random.default_rng(0)
    weights = bucket_weights(K, Experience())
    sets = Counter(
        frozenset(each.question for each in draw_questions(buckets, 2, weights, rng))
        for _ in range(5000)
    )
    assert len(sets) == 10
    assert chi_square(list(sets.values()), [500] * 10) < 27.9  # 9 degrees of freedom, 0.1 %


# ---- overflow ----


def taken_one_by_one(
    count: int, sizes: Sequence[int], weights: Sequence[float]
) -> dict[tuple[int, ...], float]:
    """Probability of every way to fill `count` places, by going through all of them (facts 1.5).

    Each place draws a bucket by its weight; what a bucket cannot give is cut off; then each missing
    place draws again by the same weights among the buckets with room.
    """
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for picks in itertools.product(range(len(sizes)), repeat=count):
        chance = float(np.prod([weights[pick] for pick in picks])) / sum(weights) ** count
        first = tuple(min(picks.count(i), size) for i, size in enumerate(sizes))
        for taken, more in refilled(first, count, sizes, weights).items():
            found[taken] += chance * more
    return dict(found)


def refilled(
    taken: tuple[int, ...], count: int, sizes: Sequence[int], weights: Sequence[float]
) -> dict[tuple[int, ...], float]:
    if sum(taken) == count:
        return {taken: 1.0}
    room = [weights[i] if taken[i] < size else 0.0 for i, size in enumerate(sizes)]
    found: dict[tuple[int, ...], float] = defaultdict(float)
    for i, weight in enumerate(room):
        if weight:
            after = (*taken[:i], taken[i] + 1, *taken[i + 1 :])
            for end, chance in refilled(after, count, sizes, weights).items():
                found[end] += chance * weight / sum(room)
    return dict(found)


@pytest.mark.parametrize("sizes, count", [((1, 2, 4), 4), ((1, 1, 6), 5), ((2, 1, 1), 3)])
def test_overflow_is_as_likely_as_in_the_slow_reference(sizes: tuple[int, ...], count: int) -> None:
    weights = bucket_weights(4, Experience(draw="linear"))  # buckets 1, 2, 3 with 1/4, 2/4, 3/4
    assert weights is not None
    expected = taken_one_by_one(count, sizes, weights.tolist())
    assert sum(expected.values()) == pytest.approx(1)
    buckets, rng = filled(dict(enumerate(sizes, start=1))), np.random.default_rng(1)
    found: Counter[tuple[int, ...]] = Counter()
    for _ in range(10_000):
        drawn = Counter(each.bucket for each in draw_questions(buckets, count, weights, rng))
        found[drawn[1], drawn[2], drawn[3]] += 1
    assert set(found) <= set(expected)
    for taken, chance in expected.items():
        error = (chance * (1 - chance) / 10_000) ** 0.5
        assert abs(found[taken] / 10_000 - chance) <= 5 * error + 1e-4, taken


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(st.integers(1, K - 1), st.integers(1, 12)),
    st.integers(0, 60),
    st.sampled_from(("gaussian", "linear", "sqrt", "uniform", "questions")),
    st.sampled_from((0.02, 0.3, 1.0, 30.0)),
    st.sampled_from((0.0, 0.5, 1.0)),
    st.integers(0, 2**32),
)
def test_a_draw_conserves_the_count_and_never_asks_too_much_of_a_bucket(
    sizes: dict[int, int], count: int, draw: Any, sigma: float, mu: float, seed: int
) -> None:
    weights = bucket_weights(K, Experience(draw=draw, sigma=sigma, mu=mu))
    draws = draw_questions(filled(sizes), count, weights, np.random.default_rng(seed))
    assert len(draws) == min(count, sum(sizes.values()))
    assert len({each.question for each in draws}) == len(draws)
    for each in draws:
        bucket, number = map(int, each.question.split("-"))
        assert bucket == each.bucket and number < sizes[bucket]


def test_overflow_goes_to_the_buckets_with_room() -> None:
    draws = draw_questions(
        filled({4: 1, 1: 9}), 6, bucket_weights(K, Experience()), np.random.default_rng(0)
    )
    assert Counter(each.bucket for each in draws) == {4: 1, 1: 5}


def test_a_gaussian_too_narrow_for_any_filled_bucket_draws_every_question_alike() -> None:
    """Facts 1.5: without a valid bucket the released code draws uniformly over the buffer."""
    weights = bucket_weights(K, Experience(sigma=0.02))
    assert weights is not None and weights[0] == weights[-1] == 0.0
    rng = np.random.default_rng(0)
    hard = [draw_questions(filled({1: 1, 7: 9}), 1, weights, rng)[0].bucket for _ in range(2000)]
    assert hard.count(1) / 2000 == pytest.approx(0.1, abs=0.034)  # five standard errors
    draws = draw_questions(filled({1: 2, 4: 1, 7: 3}), 3, weights, rng)
    assert draws[0].bucket in (1, 4) and Counter(each.bucket for each in draws)[4] == 1


# ---- which trajectory ----


@pytest.mark.parametrize("metric", METRICS)
def test_lowest_and_highest_of_every_metric_and_ties_go_to_the_older(metric: str) -> None:
    """Candidates come oldest first; 1 and 3 are alike, and so are 0 and 4."""
    values = (3.0, 1.0, 2.0, 1.0, 3.0)
    candidates = [
        a_candidate(name, name, True, **{metric: value}) for name, value in enumerate(values)
    ]
    assert ranked(candidates, order="lowest", metric=metric) == [1, 3, 2, 0, 4]
    assert ranked(candidates, order="highest", metric=metric) == [0, 4, 2, 1, 3]
    others = [name for name in METRICS if name != metric]
    for other in others:  # no metric reads another's values
        assert ranked(candidates, order="lowest", metric=other) == [0, 1, 2, 3, 4]


def test_random_puts_each_first_as_often() -> None:
    candidates = [a_candidate(name) for name in range(4)]
    orders = [tuple(ranked(candidates, seed, order="random")) for seed in range(2400)]
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    # 23 degrees of freedom: above 49.7 once in a thousand.
    assert chi_square(list(Counter(orders).values()), [100] * 24) < 49.7


def test_repo_recent_and_reward() -> None:
    """Born at steps 1, 2, 2, 3; 0 and 1 are right. Of one step, the first stored is the older."""
    facts = ((1, True), (2, True), (2, False), (3, False))
    candidates = [a_candidate(name, step, right) for name, (step, right) in enumerate(facts)]
    assert ranked(candidates, order="recent") == [3, 1, 2, 0]
    assert ranked(candidates, order="reward") == [1, 0, 3, 2]
    assert ranked(candidates, order="variance") == [1, 3, 0, 2]


@given(st.lists(st.tuples(st.integers(1, 4), st.booleans()), max_size=8))
def test_repo_variance_takes_the_most_varied_rewards(facts: list[tuple[int, bool]]) -> None:
    """Any first m have the largest variance of the reward that m of them can have: all subsets."""
    facts = sorted(facts, key=lambda fact: fact[0])
    order = ranked([a_candidate(i, *fact) for i, fact in enumerate(facts)], order="variance")
    right = [float(correct) for _, correct in facts]
    for m in range(1, len(facts) + 1):
        best = max(float(np.var(some)) for some in itertools.combinations(right, m))
        assert np.var([right[name] for name in order[:m]]) == pytest.approx(best)
