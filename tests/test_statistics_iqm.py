"""The interquartile mean against rliable, and the permutation test against all assignments."""

import itertools

import numpy as np
import pytest

from analysis.statistics import bootstrap_iqm, bootstrap_mean, iqm, permutation_p

SCORES = np.random.default_rng(0).beta(2, 3, (5, 6))
# What rliable 1.2.0 (arch 7.2.0, numpy 2.4.6) says of these scores with 50 000 replicates, rounded
# to what its own random seeds agree on. benchmarks/intervals.py prints it again where rliable is
# installed: an environment with `rliable` and `pandas<3`, and the repo on PYTHONPATH.
RLIABLE_POINT, RLIABLE_INTERVAL = 0.368809, (0.3035, 0.4502)


def test_iqm_agrees_with_rliable_s_numbers() -> None:
    made = bootstrap_iqm(SCORES, replicates=50_000)
    assert made.value == pytest.approx(RLIABLE_POINT, abs=1e-5)
    assert made.interval() == pytest.approx(RLIABLE_INTERVAL, abs=0.002)


def test_iqm_agrees_with_rliable_live() -> None:
    pytest.importorskip("rliable", reason="rliable is not installed; its numbers are above")
    from rliable import library, metrics

    np.random.seed(1)
    point, interval = library.get_interval_estimates(
        {"x": SCORES}, lambda table: np.array([metrics.aggregate_iqm(table)]), reps=20_000
    )
    made = bootstrap_iqm(SCORES)
    assert made.value == pytest.approx(point["x"][0])
    assert made.interval() == pytest.approx(interval["x"].ravel().tolist(), abs=0.004)


@pytest.mark.parametrize("size", range(1, 14))
def test_iqm_cuts_a_quarter_rounded_down_at_either_end(size: int) -> None:
    values = np.random.default_rng(size).normal(0, 1, size)
    middle = sorted(values)[size // 4 : size - size // 4]
    assert iqm(values) == pytest.approx(sum(middle) / len(middle))


def test_iqm_draws_runs_within_each_task() -> None:
    """Tasks far apart: what is drawn for one must never stand in for another."""
    table = 100.0 * np.arange(4) + np.array([[0.0], [1.0], [2.0]])
    made = bootstrap_iqm(table, replicates=500)
    assert made.value == pytest.approx(iqm(table)) == pytest.approx(151)
    assert made.replicates.min() >= 150
    assert made.replicates.max() <= 152
    assert np.array_equal(made.replicates, bootstrap_iqm(table, replicates=500).replicates)
    for bad in ([], [[1.0, float("nan")]]):
        with pytest.raises(ValueError, match="NaN"):
            iqm(bad)
    with pytest.raises(ValueError, match="shape"):
        bootstrap_iqm([1.0, 2.0])


def plain_permutation_p(values: np.ndarray) -> float:
    """Every assignment of labels, by loops over seeds and questions."""
    seeds, questions = values.shape
    seen = []
    for signs in itertools.product((1, -1), repeat=questions):
        seen.append(
            abs(sum(signs[q] * values[s, q] for s in range(seeds) for q in range(questions)))
        )
    return sum(each >= seen[0] - 1e-12 for each in seen) / len(seen)


def test_permutation_makes_every_assignment_of_few_questions() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        values = rng.integers(-2, 3, (3, 7)) / 4 + 0.1
        assert permutation_p(values) == pytest.approx(plain_permutation_p(values))
    assert permutation_p(np.full((2, 5), 0.25)) == 2 / 32
    assert permutation_p(np.zeros((2, 5))) == 1
    assert permutation_p([[0.5, np.nan, -0.5]]) == 1
    with pytest.raises(ValueError, match="no question"):
        permutation_p([[np.nan]])


def test_permutation_of_many_questions_is_drawn_and_never_zero() -> None:
    rng = np.random.default_rng(0)
    values = rng.normal(0.05, 0.3, (3, 200))
    drawn = permutation_p(values)
    assert drawn == permutation_p(values)
    # Many questions: near the p of their sums by the normal, that is, of drawn questions alone.
    one_seed = bootstrap_mean(values.mean(axis=0, keepdims=True))
    assert drawn == pytest.approx(one_seed.p_value(), abs=0.01)
    assert permutation_p(values + 1) == 1 / 10_001
    assert permutation_p(values) == permutation_p(-values)


def test_permutation_keeps_its_rate_when_labels_mean_nothing_and_seeds_do_not_matter_to_it() -> (
    None
):
    """It says nothing about training again: with seeds that differ it rejects far too often."""
    rng = np.random.default_rng(0)
    alike = [permutation_p(rng.normal(0, 0.3, (3, 30)), 400) for _ in range(600)]
    assert 0.03 <= np.mean(np.array(alike) <= 0.05) <= 0.07
    apart = [
        permutation_p(rng.normal(0, 0.3, (3, 30)) + rng.normal(0, 0.2, (3, 1)), 400)
        for _ in range(200)
    ]
    assert np.mean(np.array(apart) <= 0.05) > 0.3
