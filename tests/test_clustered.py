"""Ratios clustered on question: against plain loops, against `bootstrap_mean`, and by coverage."""

import random

import numpy as np
import polars as pl
import pytest

from analysis.observations.clustered import clustered_ratios, paired_difference
from analysis.statistics import bootstrap_mean


def test_ratios_are_the_mean_over_seeds_and_pair() -> None:
    rng = random.Random(1)
    found = [
        {"arm": arm, "seed": seed, "question": f"q{q}", "hits": hits, "of": of}
        for arm in "ab"
        for seed in (0, 1, None)
        for q in range(30)
        for of in [rng.choice([0, 0, 1, 5])]
        for hits in [rng.randint(0, of)]
    ]
    made = clustered_ratios(pl.DataFrame(found), ("arm",), "hits", "of")
    for arm in "ab":
        by_seed = []
        for seed in (None, 0, 1):
            mine = [row for row in found if row["arm"] == arm and row["seed"] == seed]
            by_seed.append(sum(row["hits"] for row in mine) / sum(row["of"] for row in mine))
        assert made[arm,].by_seed.tolist() == pytest.approx(by_seed)
        kept = {row["question"] for row in found if row["arm"] == arm and row["of"]}
        assert (made[arm,].seeds, made[arm,].questions) == (3, len(kept))
    twin = pl.DataFrame([row | {"arm": arm} for row in found if row["arm"] == "a" for arm in "ab"])
    same = paired_difference(twin, "arm", "a", "b", "hits", "of")
    assert same is not None and (same.value, *same.interval()) == (0, 0, 0)
    assert paired_difference(twin, "arm", "a", "c", "hits", "of") is None


def test_a_complete_table_has_the_interval_of_bootstrap_mean() -> None:
    values = np.random.default_rng(3).random((4, 80))
    found = [
        {"seed": seed, "question": f"q{q}", "value": values[seed, q], "one": 1, "cell": "x"}
        for seed in range(4)
        for q in range(80)
    ]
    made = clustered_ratios(pl.DataFrame(found), ("cell",), "value", "one", replicates=20_000)["x",]
    known = bootstrap_mean(values, replicates=20_000)
    assert made.value == pytest.approx(known.value)
    assert made.se == pytest.approx(known.se, rel=0.03)
    assert made.interval() == pytest.approx(known.interval(), abs=0.002)


def test_visits_of_one_question_do_not_count_as_many() -> None:
    """All visits of a question alike: the interval is that of the questions, whatever the visits.

    Over 300 worlds the 95 % interval then covers the truth about as often as it says.
    """
    rng = np.random.default_rng(5)
    covered = 0
    for world_seed in range(300):
        right = rng.random(60) < 0.7
        visits = rng.integers(1, 12, 60)
        found = pl.DataFrame(
            {
                "cell": "x",
                "seed": 0,
                "question": np.arange(60),
                "hits": right * visits,
                "of": visits,
            }
        )
        low, high = clustered_ratios(
            found, ("cell",), "hits", "of", replicates=400, seed=world_seed
        )["x",].interval()
        covered += low <= 0.7 <= high
    assert 0.90 <= covered / 300 <= 0.985
