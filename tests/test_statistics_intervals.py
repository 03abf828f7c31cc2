"""Do intervals, p-values and power hold what they say? In made-up studies, and by integration."""

import importlib
import math
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from analysis.statistics import Bootstrap, Spread, bootstrap_mean, holm_levels

sys.path.append(str(Path(__file__).resolve().parents[1] / "benchmarks"))
made_up = importlib.import_module("made_up_studies")

CELL = made_up.World(seeds=5, questions=100, seed_sd=0.05, question_sd=0.1)


@pytest.fixture(scope="module")
def null() -> list[Bootstrap]:
    """Differences of two arms that are equally good."""
    return made_up.studies("difference", CELL, 1500)


def covered(studies: list[Bootstrap], factor: float = 1.0) -> float:
    """Share of studies without an effect whose 95 % interval, `factor` as wide, holds 0."""
    return np.mean([made.spread.p_value(made.value / factor) > 0.05 for made in studies]).item()


def test_intervals_cover_what_they_say_and_narrower_ones_would_not(null: list[Bootstrap]) -> None:
    assert 0.93 <= covered(null) <= 0.97
    assert covered(null, factor=0.8) < 0.93


@pytest.mark.parametrize(("kind", "count"), [("trend", 800), ("AUROC", 150)])
def test_other_statistics_too(kind: str, count: int) -> None:
    world = made_up.World(seeds=4, questions=60, seed_sd=0.05, question_sd=0.1)
    least = 0.93 if count > 500 else 0.91  # 150 studies tell less: 0.91 is two deviations below
    assert least <= covered(made_up.studies(kind, world, count)) <= 0.99


def test_a_family_raises_a_false_alarm_no_more_often_than_said(null: list[Bootstrap]) -> None:
    p = [made.p_value() for made in null]
    alarms = [
        any(p <= rate for p, rate in zip(family, holm_levels(family), strict=True))
        for family in (p[at : at + 6] for at in range(0, len(p), 6))
    ]
    # 250 families: 5 % and three deviations more. The sharp check is the one by integration.
    assert np.mean(alarms) <= 0.09


@pytest.mark.parametrize("power", [0.5, 0.8])
def test_power_is_what_was_predicted(null: list[Bootstrap], power: float) -> None:
    """The prediction is made where nothing is planted, at the mean of the variances found."""
    parts = [(m.spread.of_seeds, m.spread.of_questions, m.spread.shared) for m in null]
    effect = Spread(CELL.seeds, *np.mean(parts, axis=0).tolist()).smallest_effect(power=power)
    world = made_up.World(CELL.seeds, CELL.questions, CELL.seed_sd, CELL.question_sd, effect)
    found = np.mean([m.p_value() <= 0.05 for m in made_up.studies("difference", world, 1000)])
    assert found == pytest.approx(power, abs=0.05)


def average(df: int, of: Callable[[float], float]) -> float:
    """Mean of a function of chi-square / df, by a fine rule of its own: equal steps of the root."""
    root = (np.arange(2000) + 0.5) * 8 / 2000
    density = root ** (df - 1) * np.exp(-df * root**2 / 2)
    values = np.array([of(each) for each in root**2])
    return float((values * density).sum() / density.sum())


def false_alarms(true: Spread, rate: float) -> float:
    """How often a test at `rate` rejects what is true: the seed part is estimated, the rest known.

    reach is a function of the estimate; tabulated, for each takes a while.
    """
    grid = np.geomspace(1e-6, 100, 40)
    table = [
        Spread(true.seeds, true.of_seeds * x, true.of_questions, true.shared).reach(rate)
        for x in grid
    ]
    return average(
        true.seeds - 1,
        lambda x: math.erfc(
            np.exp(np.interp(np.log(x), np.log(grid), np.log(table))) / true.se / math.sqrt(2)
        ),
    )


@pytest.mark.parametrize("seeds", [3, 4, 5])
def test_false_alarms_by_integration(seeds: int) -> None:
    """Over what seeds add to noise (0 to 20 times it) and what questions share (0 to 3 times it).

    At 5 % and at the level that Holm grants the first of 8: never more often than said. The least
    is with 3 seeds where questions share thrice the noise: 2.4 %, so that an interval covers 97.6.
    """
    for added in (0.0, 0.5, 2.0, 20.0):
        for shared in (0.0, 0.3, 3.0):
            true = Spread(seeds, 1 + added, 1 + shared, shared)
            assert 0.023 <= false_alarms(true, 0.05) <= 0.0505
            assert false_alarms(true, 0.05 / 8) <= 0.0505 / 8


@pytest.mark.parametrize(
    ("rate", "df", "expected"),
    [(0.05, 1, 12.7062), (0.05, 2, 4.30265), (0.01, 3, 5.84091), (0.05, 10, 2.22814),
     (0.001, 4, 8.6103), (0.4, 2, 1.06066), (0.05, 120, 1.97993)],
)  # fmt: skip
def test_seeds_alone_give_student_as_printed(rate: float, df: int, expected: float) -> None:
    seeds_only = Spread(df + 1, 1.0, 0.0, 0.0)
    assert seeds_only.reach(rate) == pytest.approx(expected, rel=1e-5)
    assert seeds_only.p_value(-expected) == pytest.approx(rate, rel=1e-4)


def test_questions_alone_give_the_normal() -> None:
    one_seed = Spread(1, 0.0, 4.0, 4.0)
    assert one_seed.p_value(3.0) == pytest.approx(math.erfc(1.5 / math.sqrt(2)))
    assert one_seed.reach(0.05) == pytest.approx(2 * 1.959964, rel=1e-6)
    assert one_seed.smallest_effect() == pytest.approx(2 * (1.959964 + 0.841621), rel=1e-4)
    assert one_seed.power(0.0) == pytest.approx(0.05)


def test_reach_is_that_of_a_sum_of_student_and_normal() -> None:
    rng = np.random.default_rng(0)
    error = math.sqrt(2) * rng.standard_t(3, 400_000) + math.sqrt(5) * rng.normal(0, 1, 400_000)
    mixed = Spread(4, 2.0, 6.0, 5.0)
    for rate in (0.2, 0.05, 0.01):
        assert mixed.reach(rate) == pytest.approx(np.quantile(np.abs(error), 1 - rate), rel=0.02)


def test_power_and_smallest_effect_are_each_other_s_inverse_and_agree_with_trials() -> None:
    mixed = Spread(3, 2.0, 2.0, 1.4)
    for rate, power in ((0.05, 0.8), (0.05, 0.3), (0.05 / 20, 0.9)):
        assert mixed.power(mixed.smallest_effect(rate, power), rate) == pytest.approx(power)
    assert mixed.power(5.0) == mixed.power(-5.0)
    rng = np.random.default_rng(1)
    trials = zip(rng.normal(5, mixed.se, 3000), rng.chisquare(2, 3000) / 2, strict=True)
    found = [Spread(3, 2.0 * part, 2.0, 1.4).p_value(value) <= 0.05 for value, part in trials]
    assert mixed.power(5.0) == pytest.approx(np.mean(found), abs=0.03)


def test_seeds_that_agree_by_luck_prove_little() -> None:
    luck = Spread(3, 0.0, 1.0, 0.0)
    assert luck.se == 1
    assert luck.reach(0.05) == pytest.approx(1.959964 / 2, rel=1e-6)
    assert luck.power(1.0) < 0.1  # for the next three seeds will not agree so


def test_p_value_interval_and_units_agree() -> None:
    rng = np.random.default_rng(0)
    few = bootstrap_mean(rng.normal(0.1, 0.3, (3, 100)))
    assert few.interval(1 - few.p_value())[0] == pytest.approx(0, abs=1e-6)
    low, high = few.interval(0.99)
    assert few.p_value(low) == pytest.approx(few.p_value(high)) == pytest.approx(0.01)
    assert few.p_value(null=few.value) == 1
    assert few.scaled(100).p_value() == pytest.approx(few.p_value())
    assert few.scaled(-100).smallest_effect() == pytest.approx(100 * few.smallest_effect())
    assert bootstrap_mean(np.zeros((3, 5))).p_value() == 1
    assert bootstrap_mean(np.ones((3, 5))).p_value() == 0
    assert bootstrap_mean(np.ones((3, 5))).interval() == (1, 1)


def test_parts_of_the_variance_are_without_bias() -> None:
    """Seeds 0.09 / 3 and noise 1 / 150; questions 0.16 / 50 and that noise; shared 0.16 / 50."""
    rng = np.random.default_rng(0)
    made = [
        bootstrap_mean(
            rng.normal(0, 0.3, (3, 1)) + rng.normal(0, 0.4, (1, 50)) + rng.normal(0, 1, (3, 50)),
            replicates=300,
        ).spread
        for _ in range(600)
    ]
    assert np.mean([s.of_seeds for s in made]) == pytest.approx(0.03 + 1 / 150, rel=0.12)
    assert np.mean([s.of_questions for s in made]) == pytest.approx(0.0032 + 1 / 150, rel=0.05)
    assert np.mean([s.shared for s in made]) == pytest.approx(0.0032, rel=0.15)
    same = bootstrap_mean(np.repeat(rng.normal(0, 1, (1, 50)), 3, axis=0)).spread
    assert same.of_seeds == pytest.approx(0)
    assert same.shared == pytest.approx(same.of_questions)


def test_percentiles_miss_too_often_where_three_seeds_differ_much() -> None:
    """Why verdicts and tables take the other interval."""
    made = made_up.studies("difference", made_up.World(3, 100, 0.15, 0.1), 500)
    held = [low <= 0 <= high for low, high in (each.percentiles() for each in made)]
    assert np.mean(held) < 0.88
    assert covered(made) > 0.92
