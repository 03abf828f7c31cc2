"""Each statistic against a slow plain reference; intervals are in test_statistics_intervals.py."""

import itertools
import math
import random
import time
from fractions import Fraction

import numpy as np
import pytest

from analysis.statistics import (
    auroc,
    avg_at_k,
    bootstrap_auroc,
    bootstrap_mean,
    bootstrap_trend,
    draw_weights,
    holm_levels,
    mann_kendall,
    pass_at_k,
    widen,
)


def plain_bootstrap(values: np.ndarray, replicates: int, seed: int) -> list[float]:
    """Loops, and values instead of weights: what a seed adds is widened, part by part."""
    rng = random.Random(seed)
    seeds, questions = values.shape
    grand = values.mean()
    by_seed = values.mean(axis=1) - grand
    by_question = values.mean(axis=0) - grand
    rest = values - grand - by_seed[:, None] - by_question[None, :]
    wider = math.sqrt(seeds / (seeds - 1))
    means = []
    for _ in range(replicates):
        rows = [rng.randrange(seeds) for _ in range(seeds)]
        columns = [rng.randrange(questions) for _ in range(questions)]
        total = grand
        total += wider * sum(by_seed[r] for r in rows) / seeds
        total += sum(by_question[c] for c in columns) / questions
        inner = sum(rest[r, c] for r in rows for c in columns) / (seeds * questions)
        means.append(total + wider * inner)
    return means


def test_bootstrap_agrees_with_plain_loops() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(0, 1, (4, 30)) + rng.normal(0, 1, (4, 1)) + rng.normal(0, 2, (1, 30))
    ours = bootstrap_mean(values, seed=3)
    plain = np.array(plain_bootstrap(values, 4000, seed=4))
    assert ours.value == pytest.approx(values.mean())
    assert ours.se == pytest.approx(plain.std(ddof=1), rel=0.06)
    for level in (0.8, 0.95):
        tail = (1 - level) / 2
        expected = np.quantile(plain, [tail, 1 - tail])
        assert ours.percentiles(level) == pytest.approx(expected, abs=0.15 * plain.std())


def test_bootstrap_standard_error_is_unbiased_for_few_seeds() -> None:
    """Seeds alone vary: the squared standard error must average to s^2 / S, not (S - 1) / S^2."""
    rng = np.random.default_rng(0)
    runs = rng.normal(0, 1, (60, 3))
    errors = [bootstrap_mean(np.repeat(run[:, None], 5, axis=1), 2000).se ** 2 for run in runs]
    assert np.mean(errors) == pytest.approx(np.mean(runs.var(axis=1, ddof=1) / 3), rel=0.04)


def test_bootstrap_is_fast_and_repeats_itself() -> None:
    values = np.random.default_rng(0).random((5, 400))
    started = time.perf_counter()
    first = bootstrap_mean(values, seed=7)
    assert time.perf_counter() - started < 3  # 0.2 s alone; the tests share their cores
    assert np.array_equal(first.replicates, bootstrap_mean(values, seed=7).replicates)
    assert not np.array_equal(first.replicates, bootstrap_mean(values, seed=8).replicates)


def test_one_seed_draws_questions_only() -> None:
    values = np.random.default_rng(0).random((1, 200))
    made = bootstrap_mean(values)
    assert made.se == pytest.approx(values.std(ddof=1) / math.sqrt(200), rel=0.05)
    assert (made.seeds, made.questions) == (1, 200)


def test_paired_difference_beats_unpaired() -> None:
    rng = np.random.default_rng(2)
    hard = rng.random((1, 300))
    first, second = hard + 0.05 + rng.normal(0, 0.01, (3, 300)), np.repeat(hard, 3, axis=0)
    paired = bootstrap_mean(first - second)
    unpaired = math.hypot(bootstrap_mean(first).se, bootstrap_mean(second).se)
    assert paired.interval()[0] > 0
    assert paired.se < unpaired / 5


def test_questions_without_a_value_in_every_seed_are_left_out() -> None:
    values = np.array([[1.0, np.nan, 0.0], [1.0, 0.0, 1.0]])
    made = bootstrap_mean(values)
    assert (made.questions, made.value) == (2, 0.75)
    with pytest.raises(ValueError, match="no question"):
        bootstrap_mean(np.full((2, 3), np.nan))
    with pytest.raises(ValueError, match="shape"):
        bootstrap_mean(np.ones(3))


def plain_auroc(scores: list[float], positive: list[bool], strata: list[int]) -> float:
    won = pairs = 0.0
    for i, j in itertools.product(range(len(scores)), repeat=2):
        if positive[i] and not positive[j] and strata[i] == strata[j]:
            pairs += 1
            won += (scores[i] > scores[j]) + 0.5 * (scores[i] == scores[j])
    return won / pairs


def test_auroc_agrees_with_all_pairs_and_ties() -> None:
    rng = np.random.default_rng(5)
    scores = rng.integers(0, 8, 150).astype(float)
    positive, strata = rng.random(150) < 0.4, rng.integers(1, 4, 150)
    one = [1] * 150
    assert auroc(scores, positive) == pytest.approx(plain_auroc(scores, positive, one))
    assert auroc(scores, positive, strata) == pytest.approx(plain_auroc(scores, positive, strata))
    assert math.isnan(auroc([1.0, 2.0], [True, True]))
    assert math.isnan(auroc([], []))
    with pytest.raises(ValueError, match="NaN"):
        auroc([1.0, math.nan], [True, False])


def test_strata_remove_a_difference_between_them() -> None:
    """Inside each stratum the score says nothing; pooled it seems to."""
    rng = np.random.default_rng(0)
    strata = np.repeat([0, 1], 500)
    scores = rng.random(1000) + strata
    positive = rng.random(1000) < np.where(strata, 0.8, 0.2)
    assert auroc(scores, positive) > 0.7
    assert auroc(scores, positive, strata) == pytest.approx(0.5, abs=0.06)


def test_auroc_bootstrap_agrees_with_drawing_clusters() -> None:
    rng = np.random.default_rng(3)
    questions = np.repeat(np.arange(40), 6)
    positive = (rng.random(40) < 0.4)[questions]  # a label of the question: rows are not 240 facts
    scores = rng.normal(0, 1, 240) + positive + rng.normal(0, 1, 40)[questions]
    ours = bootstrap_auroc(scores, positive, questions, seed=1)
    plain = []
    for _ in range(500):
        rows = np.concatenate([np.flatnonzero(questions == q) for q in rng.integers(0, 40, 40)])
        plain.append(auroc(scores[rows], positive[rows]))
    assert ours.value == auroc(scores, positive)
    assert ours.se == pytest.approx(np.std(plain, ddof=1), rel=0.12)
    by_row = bootstrap_auroc(scores, positive, np.arange(240), seed=1)
    assert ours.se > by_row.se  # clustering must cost something here
    for outside in ({"strata": [0, 1]}, {"seeds": [0, 1]}):
        with pytest.raises(ValueError, match="stratum"):
            bootstrap_auroc([1.0, 2.0], [True, False], [0, 1], **outside)


def test_auroc_is_the_mean_over_seeds_of_each_of_them() -> None:
    rng = np.random.default_rng(3)
    seeds, questions = np.arange(300) % 3, np.arange(300) // 3
    positive = rng.random(300) < 0.5
    scores = rng.normal(0, 1, 300) + positive + 5 * seeds
    made = bootstrap_auroc(scores, positive, questions, seeds)
    each = [auroc(scores[seeds == s], positive[seeds == s]) for s in range(3)]
    assert made.by_seed == pytest.approx(each)
    assert made.value == pytest.approx(np.mean(each))


def test_auroc_difference_is_paired() -> None:
    rng = np.random.default_rng(3)
    positive, questions = rng.random(600) < 0.5, np.arange(600) // 3
    score = rng.normal(0, 1, 600) + positive
    first = bootstrap_auroc(score, positive, questions, seeds=questions % 3, seed=2)
    noisy = score + rng.normal(0, 0.1, 600)
    second = bootstrap_auroc(noisy, positive, questions, seeds=questions % 3, seed=2)
    difference = first.minus(second)
    assert difference.value == pytest.approx(first.value - second.value)
    assert difference.se < first.se / 2
    assert (difference.seeds, difference.questions) == (3, 200)


def plain_slope_difference(first: tuple, second: tuple) -> float:
    slopes = []
    for hits, trials in (first, second):
        by_seed = []
        for seed in range(hits.shape[0]):
            shares = [hits[seed, w].sum() / trials[seed, w].sum() for w in range(hits.shape[1])]
            by_seed.append(np.polyfit(range(len(shares)), shares, 1)[0])
        slopes.append(np.mean(by_seed))
    return slopes[0] - slopes[1]


def test_trend_difference() -> None:
    rng = np.random.default_rng(0)
    trials = rng.integers(1, 5, (2, 3, 6, 50))
    rising = np.linspace(0.1, 0.6, 6)[None, :, None]
    first = (rng.binomial(trials[0], rising), trials[0])
    second = (rng.binomial(trials[1], 0.3), trials[1])
    times = np.arange(6)
    one, other = (bootstrap_trend(*arm, times, replicates=2000) for arm in (first, second))
    made = one.minus(other)
    assert made.value == pytest.approx(plain_slope_difference(first, second))
    assert made.interval()[0] > 0
    by_step = bootstrap_trend(*first, 10 * times + 1, replicates=50)
    assert by_step.scaled(10).value == pytest.approx(one.value)
    gap = trials[0].copy()
    gap[1, 2] = 0
    with pytest.raises(ValueError, match="nothing to take"):
        bootstrap_trend(np.minimum(first[0], gap), gap, times)
    with pytest.raises(ValueError, match="two windows"):
        bootstrap_trend(first[0][:, :1], trials[0][:, :1], times[:1])


def test_mann_kendall_agrees_with_loops_and_a_published_example() -> None:
    values = [4, 6, 6, 7, 9, 9, 9, 12, 10, 15]
    s = sum(
        (values[j] > values[i]) - (values[j] < values[i])
        for i in range(10)
        for j in range(i + 1, 10)
    )
    trend = mann_kendall(values)
    variance = (10 * 9 * 25 - (2 * 1 * 9 + 3 * 2 * 11)) / 18  # one pair and one triple of ties
    assert trend.s == s
    assert trend.p == pytest.approx(math.erfc((s - 1) / math.sqrt(2 * variance)))
    assert trend.tau == pytest.approx(s / math.sqrt(45 * (45 - 1 - 3)))
    assert mann_kendall(values[::-1]).s == -s
    assert mann_kendall([1, 1, 1, 1]) == mann_kendall([1, math.nan, 2]).__class__(0, 0.0, 1.0)
    assert mann_kendall([1, math.nan, 2]).p == 1.0
    assert mann_kendall([]).p == 1.0


def test_mann_kendall_keeps_its_error_rate() -> None:
    rng = np.random.default_rng(0)
    rejected = np.mean([mann_kendall(rng.integers(0, 5, 20)).p < 0.05 for _ in range(1000)])
    assert 0.025 < rejected < 0.07


def test_holm_levels_reject_exactly_what_holm_rejects() -> None:
    rng = random.Random(0)
    for _ in range(200):
        p_values = [rng.random() ** 3 for _ in range(rng.randint(1, 6))]
        rejected = set()
        for place, at in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
            if p_values[at] > 0.05 / (len(p_values) - place):
                break
            rejected.add(at)
        levels = holm_levels(p_values)
        assert rejected == {i for i, p in enumerate(p_values) if p <= levels[i]}
    assert holm_levels([0.01]) == [0.05]
    assert holm_levels([]) == []


def test_avg_and_pass_at_k_agree_with_counting_subsets() -> None:
    for samples, k in itertools.product(range(1, 7), range(1, 7)):
        for correct in range(samples + 1):
            if k > samples:
                continue
            draws = list(itertools.combinations([1] * correct + [0] * (samples - correct), k))
            expected = sum(any(draw) for draw in draws) / len(draws)
            assert pass_at_k([correct], [samples], k)[0] == pytest.approx(expected)
    assert avg_at_k([[1, 2]], [[4, 4]]).tolist() == [[0.25, 0.5]]
    assert math.isnan(avg_at_k([0], [0])[0])
    assert pass_at_k([0, 3, 2], [4, 4, 4], 2)[:2].tolist() == [0, 1]  # c = 0; n - c < k
    with pytest.raises(ValueError, match="pass@5"):
        pass_at_k([1], [4], 5)
    with pytest.raises(ValueError, match="correct <= samples"):
        avg_at_k([5], [4])


def test_pass_at_k_of_huge_counts_is_exact() -> None:
    correct, samples, k = 70_000, 1_000_000, 40
    fail = Fraction(1)
    for i in range(k):
        fail *= Fraction(samples - correct - i, samples - i)
    assert pass_at_k([correct], [samples], k)[0] == pytest.approx(float(1 - fail), rel=1e-12)
    assert pass_at_k([0], [10**9], 1000)[0] == 0
    assert pass_at_k([1], [10**9], 10)[0] == pytest.approx(1e-8, rel=1e-6)


def test_weights_keep_the_total() -> None:
    weights = draw_weights(7, 100, np.random.default_rng(0))
    for made in (weights, widen(weights)):
        assert made.sum(axis=1) == pytest.approx(np.full(100, 7.0))
    assert (weights >= 0).all()
    alone = draw_weights(1, 3, np.random.default_rng(0))
    assert widen(alone).tolist() == alone.tolist() == [[1.0]] * 3
