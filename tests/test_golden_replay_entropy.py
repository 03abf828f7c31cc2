"""Entropy and age of trajectories: each query against a plain loop over the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

from collections import defaultdict
from collections.abc import Sequence
from statistics import mean
from typing import Any

import duckdb
import pytest
from golden_lake import rows as golden_rows
from replay_loops import (
    RUN,
    Row,
    Rows,
    assert_same,
    made,
    made_catalog,
    mean_or_none,
    replay_of,
    start_of,
)

from analysis.queries import answer


@pytest.fixture(scope="module")
def runs() -> dict[str, Row]:
    return {row["run"]: row for row in golden_rows("runs")}


@pytest.fixture(scope="module")
def trajectories() -> Rows:
    return golden_rows("trajectories")


# entropy_by_correctness

CELL = ("study", "arm", "group_size", "bucket", "window_start")


def quantile(values: list[float], percent: int) -> float | None:
    """The least value that so many percent of the values do not exceed, cut to 0.001."""
    needed = -(-percent * len(values) // 100)
    return int(sorted(values)[needed - 1] * 1000) / 1000 if values else None


def auc(wrong: Sequence[float], right: Sequence[float]) -> float:
    """How often a wrong one is above a right one, over all pairs."""
    wins = [(one > other) + (one == other) / 2 for one in wrong for other in right]
    return mean(wins)


def hanley_mcneil(area: float, positives: int, negatives: int) -> tuple[float, float]:
    """Radiology 143:29 (1982), equation 2."""
    two_positives, two_negatives = area / (2 - area), 2 * area**2 / (1 + area)
    variance = area * (1 - area)
    variance += (positives - 1) * (two_positives - area**2)
    variance += (negatives - 1) * (two_negatives - area**2)
    half = 1.96 * max(variance / (positives * negatives), 0) ** 0.5
    return max(area - half, 0), min(area + half, 1)


def entropies(trajectories: Rows, runs: dict[str, Row], window: int) -> Rows:
    cells: dict[tuple[Any, ...], dict[bool, list[float]]] = defaultdict(
        lambda: {True: [], False: []}
    )
    for row in trajectories:
        if row["replayed"] or row["correct"] is None or row["mean_entropy"] is None:
            continue
        run = runs[row["run"]]
        key = row["group_size"], row["group_successes"], start_of(row["step"], window)
        cells[run["study"], run["arm"], *key][row["correct"]].append(row["mean_entropy"])
    expected = []
    for key, sides in cells.items():
        row = dict(zip(CELL, key, strict=True))
        for name, values in (("right", sides[True]), ("wrong", sides[False])):
            row |= {f"{name}_fresh": len(values), f"{name}_mean": mean_or_none(values)}
            row |= {f"{name}_p{percent}": quantile(values, percent) for percent in (10, 50, 90)}
        row |= {"auc": None, "auc_low": None, "auc_high": None}
        if sides[True] and sides[False]:
            wrong, right = ([int(value * 1000) for value in sides[side]] for side in (False, True))
            row["auc"] = auc(wrong, right)
            row["auc_low"], row["auc_high"] = hanley_mcneil(row["auc"], len(wrong), len(right))
            if len(wrong) * len(right) > 200:  # then the bins cost little
                exact = auc(sides[False], sides[True])
                assert row["auc"] == pytest.approx(exact, abs=0.02)
        expected.append(row)
    return expected


@pytest.mark.parametrize("window", [50, 8])
def test_entropy_by_correctness(
    golden: duckdb.DuckDBPyConnection, trajectories: Rows, runs: dict[str, Row], window: int
) -> None:
    frame = answer(golden, "entropy_by_correctness", window=window)
    expected = entropies(trajectories, runs, window)
    assert_same(frame, expected, *CELL)
    known = [row for row in expected if row["auc"] is not None]
    assert any(row["auc_low"] > 0.5 for row in known)  # entropy does tell in some
    assert any(row["auc_low"] < 0.5 < row["auc_high"] for row in known)
    assert len({row["window_start"] for row in expected}) == (1 if window == 50 else 2)


def test_the_auc_by_hand() -> None:
    """Wrong 0.5 and 0.2, right 0.2 (a tie) and 0.1: 3.5 of 4 pairs; the others are not graded."""
    entropy = [(0.5, False), (0.2004, False), (0.2, True), (0.1, True), (0.9, None)]
    rows = [
        made(1, slot, mean_entropy=value, correct=correct, group_size=4, group_successes=2)
        for slot, (value, correct) in enumerate(entropy)
    ]
    rows.append(made(2, mean_entropy=0.9, correct=None, group_size=0, group_successes=0))
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        (row,) = answer(connection, "entropy_by_correctness").to_dicts()
    assert row["auc"] == 3.5 / 4
    assert (row["auc_low"], row["auc_high"]) == pytest.approx(hanley_mcneil(3.5 / 4, 2, 2))
    assert (row["wrong_p10"], row["wrong_p90"], row["wrong_fresh"]) == (0.2, 0.5, 2)


# staleness_ratio


def age_band(age: int) -> tuple[int, int]:
    low, high = 0, 0
    while high < age:
        low, high = high + 1, 2 * high + 1
    return low, high


def between(values: list[float], share: float) -> float | None:
    """The quantile, with linear interpolation."""
    if not values:
        return None
    place = (len(values) - 1) * share
    low, rest = int(place), place - int(place)
    ordered = [*sorted(values), 0.0]
    return ordered[low] + rest * (ordered[low + 1] - ordered[low])


def staleness(trajectories: Rows, runs: dict[str, Row]) -> Rows:
    bands = defaultdict(list)
    for row in trajectories:
        if row["replayed"] and row["source"] and row["source"].rsplit(":", 3)[0] == row["run"]:
            band = age_band(row["step"] - row["birth_step"])
            bands[runs[row["run"]]["study"], runs[row["run"]]["arm"], *band].append(row)
    expected = []
    for (study, arm, low, high), rows in bands.items():
        trained = [row for row in rows if row["ratio_mean"] is not None]
        ratios = [row["ratio_mean"] for row in trained]
        ends = {"ratio_min": min, "ratio_max": max}
        means = ("ratio_ess", "weight_mean", "weight_ess", "clipped_share")
        expected.append(
            {
                "study": study,
                "arm": arm,
                "age_from": low,
                "age_to": high,
                "trajectories": len(rows),
                "with_gradient": len(trained),
                "ratio_mean": mean_or_none(ratios),
                "ratio_p05": between(ratios, 0.05),
                "ratio_p50": between(ratios, 0.5),
                "ratio_p95": between(ratios, 0.95),
            }
            | {name: end(row[name] for row in trained) for name, end in ends.items() if trained}
            | {name: mean_or_none(row[name] for row in trained) for name in means}
        )
    return expected


def test_staleness_ratio(
    golden: duckdb.DuckDBPyConnection, trajectories: Rows, runs: dict[str, Row]
) -> None:
    expected = staleness(trajectories, runs)
    assert_same(answer(golden, "staleness_ratio"), expected, "study", "arm", "age_from")
    assert {row["age_from"] for row in expected} >= {1, 2, 4}
    assert any(0 < row["with_gradient"] < row["trajectories"] for row in expected)


def test_age_and_clip_by_hand() -> None:
    """Ages 3 and 4 lie in two bands; one of another run has no age; the clip takes a share."""
    rows = [
        replay_of("r:2:0:0", 5, birth_step=2, ratio_mean=1.5, clipped_share=0.5),
        replay_of("r:2:0:0", 6, birth_step=2, ratio_mean=2.0, clipped_share=0.0),
        replay_of("r:3:0:0", 7, birth_step=3, ratio_mean=3.0, clipped_share=1.0),
        replay_of("r:3:0:0", 8, birth_step=3),  # without a gradient
        replay_of("other:3:0:0", 9, birth_step=3, ratio_mean=9.0),
        replay_of("expert:q", 9, birth_step=0, ratio_mean=9.0),
    ]
    for slot, row in enumerate(rows):
        row["slot"] = slot
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        frame = answer(connection, "staleness_ratio")
    columns = ("age_from", "age_to", "trajectories", "with_gradient", "ratio_p50", "clipped_share")
    assert frame.select(columns).rows() == [(2, 3, 1, 1, 1.5, 0.5), (4, 7, 3, 2, 2.5, 0.5)]
