"""The snowball detector: its estimates against regressions written out, and its rule."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from planted_worlds import World, catalog, play
from snowball import PLAIN
from snowball import STRONG as STRENGTH

from analysis.snowball import QUERIES, ask, detect, snowball_finding
from analysis.snowball.arms import contrast, slopes
from analysis.snowball.cells import NotHereError, ratios, seeds_of
from analysis.snowball.inheritance import inherited
from analysis.snowball.parts import Name, Part
from analysis.snowball.replays import CLASSES, WINDOW, dose_response, effect, gap
from analysis.snowball.verdict import STRONG, WEAK, judge, studied

Frames = dict[str, pl.DataFrame]
DOCS = Path(__file__).resolve().parents[1] / "docs"
SMALL = World(seeds=2, steps=60, pool=120)


@pytest.fixture(scope="module")
def frames() -> Frames:
    """A small world with a strong snowball, and what the named queries say of it."""
    with catalog(*play(SMALL.of_strength(1), 1)) as connection:
        return ask(connection, "planted")


def of(frames: Frames, query: str, arm: str) -> pl.DataFrame:
    """The rows of one arm with seed 0."""
    return frames[query].filter((pl.col("arm") == arm) & (pl.col("seed") == 0))


def dummies(*labels: list[object]) -> np.ndarray:
    """A column of zeros and ones for each combination of labels that occurs."""
    rows = list(zip(*labels, strict=True))
    kinds = sorted(set(rows), key=str)
    return np.array([[float(row == kind) for kind in kinds] for row in rows])


def least_squares(y: list[float], x: np.ndarray, weight: list[float]) -> np.ndarray:
    root = np.sqrt(np.array(weight))
    return np.linalg.lstsq(x * root[:, None], np.array(y) * root, rcond=None)[0]


def test_a_mean_of_values_is_the_ratio_of_the_sums() -> None:
    cells = pl.DataFrame(
        {
            "seed": ["0", "0", "1"],
            "question": ["a", "b", "b"],
            "top": [1.0, 2, 3],
            "bottom": [4, 1, 2],
        }
    )
    values = ratios(cells, ["0", "1"], ["a", "b", "c"])
    assert values.shape == (2, 3)
    assert values.mean(axis=1) == pytest.approx([3 / 5, 3 / 2])
    assert values[1] == pytest.approx([1.5, 1.5 + (3 - 1.5 * 2) / (2 / 3), 1.5])
    assert seeds_of(cells.with_columns(bottom=pl.Series([1, -1, 2]))) == {"1"}


def test_a_slope_is_that_of_a_regression_with_a_constant_for_each_question(frames: Frames) -> None:
    rows = of(frames, "snowball_fresh", "exgrpo")
    y = (rows["marked"] / rows["right_fresh"]).to_list()
    time = (rows["window_start"] / 100).to_numpy()[:, None]
    x = np.hstack([time, dummies(rows["question"].to_list())])
    found = slopes(rows)["top"].sum() / slopes(rows)["bottom"].sum()
    assert found == pytest.approx(least_squares(y, x, rows["right_fresh"].to_list())[0])


def test_a_contrast_is_a_slope_less_the_mean_of_the_others_by_seed(frames: Frames) -> None:
    fresh = frames["snowball_fresh"]
    made, compared = contrast(fresh, 50)
    assert compared == ["exgrpo", "question_replay", "on_policy"]

    def own(arm: str, seed: int) -> float:
        cells = slopes(fresh.filter((pl.col("arm") == arm) & (pl.col("seed") == seed)))
        return float(cells["top"].sum() / cells["bottom"].sum())

    expected = [
        own("highest_entropy", seed) - np.mean([own(arm, seed) for arm in compared])
        for seed in (0, 1)
    ]
    assert made.by_seed == pytest.approx(expected)


def matched(rows: list[dict[str, float]], y: list[float], weight: list[float]) -> float:
    """Least squares of y on the marks replayed, a constant a stratum, and the share before."""
    share = [row["earlier_marked"] / row["earlier_right"] for row in rows]
    strata = dummies(
        [(row["step"] - 1) // WINDOW for row in rows],
        [row["bucket"] for row in rows],
        [row["replayed"] for row in rows],
        [min(int(CLASSES * each), CLASSES - 1) for each in share],
    )
    x = np.hstack([[[row["replayed_marked"]] for row in rows], np.array(share)[:, None], strata])
    return float(least_squares(y, x, weight)[0])


def first_replays(rows: pl.DataFrame) -> list[tuple[dict[str, float], dict[str, float] | None]]:
    """The first visit of each question, and the next one where there is one."""
    pairs = []
    for _, visits in rows.sort("question", "visit").group_by("question", maintain_order=True):
        first, *later = visits.to_dicts()
        pairs.append((first, later[0] if later else None))
    return pairs


@pytest.mark.parametrize("arm", ["highest_entropy", "no_trajectory_selection"])
def test_an_event_study_is_a_regression_inside_strata(frames: Frames, arm: str) -> None:
    rows = of(frames, "snowball_visits", arm)
    kept = [
        (first, then)
        for first, then in first_replays(rows)
        if then and first["right_fresh"] and then["right_fresh"] and first["earlier_right"]
    ]
    change = [
        then["marked"] / then["right_fresh"] - first["marked"] / first["right_fresh"]
        for first, then in kept
    ]
    weight = [1 / (1 / first["right_fresh"] + 1 / then["right_fresh"]) for first, then in kept]
    expected = matched([first for first, _ in kept], change, weight)
    assert effect(rows, 50).value == pytest.approx(expected)


def test_the_placebo_is_the_same_at_the_visit_of_the_replay(frames: Frames) -> None:
    rows = of(frames, "snowball_visits", "highest_entropy")
    kept = [first for first, _ in first_replays(rows) if first["right_fresh"]]
    kept = [first for first in kept if first["earlier_right"]]
    share = [first["marked"] / first["right_fresh"] for first in kept]
    expected = matched(kept, share, [first["right_fresh"] for first in kept])
    assert gap(rows, 0, 50).value == pytest.approx(expected)


def test_a_dose_response_is_that_of_two_stages(frames: Frames) -> None:
    """Luck of each replay by regression, its sum before a visit as instrument for the dose."""
    rows = of(frames, "snowball_visits", "exgrpo").to_dicts()
    events = [row for row in rows if row["replayed"] and row["earlier_right"]]
    share = [row["earlier_marked"] / row["earlier_right"] for row in events]
    strata = dummies(
        [(row["step"] - 1) // WINDOW for row in events],
        [row["bucket"] for row in events],
        [min(int(CLASSES * each), CLASSES - 1) for each in share],
    )
    x = np.hstack([np.array(share)[:, None], strata])
    marks = [row["replayed_marked"] for row in events]
    left = np.array(marks) - x @ least_squares(marks, x, [1.0] * len(events))
    luck = {(row["question"], row["visit"]): each for row, each in zip(events, left, strict=True)}
    later = []
    for row in rows:
        before = [b for b in rows if b["question"] == row["question"] and b["visit"] < row["visit"]]
        if before and row["right_fresh"]:
            lucks = sum(luck.get((b["question"], b["visit"]), 0) for b in before)
            later.append((row, lucks, sum(b["replayed_marked"] for b in before)))
    top = bottom = 0.0
    for window in {(row["step"] - 1) // WINDOW for row, _, _ in later}:
        mine = [each for each in later if (each[0]["step"] - 1) // WINDOW == window]
        right = sum(row["right_fresh"] for row, _, _ in mine)
        marked = sum(row["marked"] for row, _, _ in mine) / right
        dose = sum(row["right_fresh"] * dose for row, _, dose in mine) / right
        for row, lucks, doses in mine:
            top += lucks * (row["marked"] - row["right_fresh"] * marked)
            bottom += lucks * row["right_fresh"] * (doses - dose)
    made = dose_response(of(frames, "snowball_visits", "exgrpo"), 50)
    assert made.value == pytest.approx(top / bottom)


def test_inheritance_is_a_difference_of_means() -> None:
    rows = [
        {"seed": 0, "run": "r", "question": "a", "after": True, "pairs": 3, "difference": 0.4},
        {"seed": 0, "run": "r", "question": "b", "after": True, "pairs": 1, "difference": 0.0},
        {"seed": 0, "run": "r", "question": "a", "after": False, "pairs": 2, "difference": 0.1},
        {"seed": 0, "run": "r", "question": "c", "after": True, "pairs": 9, "difference": None},
    ]
    assert inherited(pl.DataFrame(rows), 50).value == pytest.approx(1.2 / 4 - 0.1)
    with pytest.raises(NotHereError, match="both before and after"):
        inherited(pl.DataFrame(rows[:2]), 50)


def part(name: Name, low: float | None, high: float | None, p: float = 0.5) -> Part:
    value = None if low is None or high is None else (low + high) / 2
    return Part(name, "", value, low, high, p)


def parts(
    arms: tuple[float, float] | None,
    event: tuple[float, float] | None,
    dose: tuple[float, float] | None,
    placebo: float = 0.5,
) -> dict[Name, Part]:
    given = {"arms contrast": arms, "event study": event, "dose-response": dose}
    made = {name: part(name, *(bounds or (None, None))) for name, bounds in given.items()}
    return made | {"placebo": part("placebo", -0.1, 0.1, placebo)}  # type: ignore[return-value]


UP, OPEN, SMALL_ONE, DOWN = (0.01, 0.3), (-0.1, 0.2), (-0.01, 0.005), (-0.2, -0.1)


@pytest.mark.parametrize(
    ("given", "rises", "verdict"),
    [
        (parts(UP, UP, UP), True, "supported"),
        (parts(UP, OPEN, UP), True, "supported"),
        (parts(UP, UP, None), True, "supported"),
        (parts(UP, UP, UP), False, "inconclusive (underpowered)"),
        (parts(UP, UP, UP, placebo=0.005), True, "inconclusive (underpowered)"),
        (parts(UP, DOWN, UP), True, "inconclusive (underpowered)"),
        (parts(UP, OPEN, OPEN), True, "inconclusive (underpowered)"),
        (parts(OPEN, UP, UP), True, "inconclusive (underpowered)"),
        (parts(SMALL_ONE, OPEN, SMALL_ONE), True, "contradicted"),
        (parts(DOWN, OPEN, DOWN), False, "contradicted"),
        (parts(SMALL_ONE, UP, SMALL_ONE), True, "inconclusive (underpowered)"),
        (parts(SMALL_ONE, OPEN, OPEN), True, "inconclusive (underpowered)"),
        (parts(None, UP, UP), True, "not testable here"),
        (parts(UP, None, None), True, "not testable here"),
    ],
)
def test_the_rule(given: dict[Name, Part], rises: bool, verdict: str) -> None:
    found, reading = judge(given, rises)
    assert found == verdict and reading.endswith(".")
    assert max(SMALL_ONE) < min(WEAK.values()) < min(STRONG.values())


def test_worlds_without_a_snowball_give_none_and_strong_ones_give_one() -> None:
    """Every confounder on, and highest_entropy drifts by itself: arms alone would be taken in."""
    own_drift = replace(World(), arm_drift=0.4)
    for seed in range(2):
        with catalog(*play(own_drift, seed)) as connection:
            nothing = detect(ask(connection, "planted"), replicates=300)
        assert nothing.verdict != "supported" and nothing.p is not None and nothing.p > 0.05
        for name in ("event study", "dose-response"):
            made = nothing.part(name)  # type: ignore[arg-type]
            assert made.low is not None and made.high is not None and made.low < 0 < made.high
    with catalog(*play(World().of_strength(1), 0)) as connection:
        strong = detect(ask(connection, "planted"), replicates=300)
    assert strong.verdict == "supported", strong.lines
    assert strong.p is not None and strong.p < 0.05 and strong.power is not None


def test_what_one_arm_can_tell_is_told_and_no_verdict(frames: Frames) -> None:
    alone = {name: rows.filter(pl.col("arm") == "exgrpo") for name, rows in frames.items()}
    found = detect(alone, replicates=50)
    assert found.verdict == "not testable here" and found.power is found.p is None
    assert "dose-response" in found.reading and found.part("dose-response").value is not None
    assert "of highest_entropy" in found.part("arms contrast").sentence
    empty = detect({name: frames[name].clear() for name in QUERIES}, replicates=50)
    assert empty.verdict == "not testable here" and empty.notes == ()
    one_seed = {name: rows.filter(pl.col("seed") == 0) for name, rows in frames.items()}
    assert "2 seeds" in detect(one_seed, replicates=50).part("arms contrast").sentence


def test_an_import_without_seeds_is_studied_whatever_its_name(frames: Frames) -> None:
    seedless = {
        name: rows.filter(pl.col("arm") == "exgrpo", pl.col("seed") == 0).with_columns(
            arm=pl.lit("mine"), seed=pl.lit(None, pl.Int64)
        )
        for name, rows in frames.items()
    }
    found = detect(seedless, replicates=50)
    assert studied(seedless["snowball_visits"]).height == seedless["snowball_visits"].height
    assert "one seed, so over questions only" in found.part("dose-response").sentence


def test_the_ledger_shows_the_contrast_and_the_verdict(frames: Frames) -> None:
    found, whole = snowball_finding(frames), detect(frames)
    assert found.verdict == whole.verdict and found.value == whole.part("arms contrast").value
    assert len(found.notes) == len(whole.parts) + len(whole.notes)


def test_the_published_curve_keeps_what_it_promises() -> None:
    """False alarms at most 5 % without a snowball, detection at least 90 % of a strong one."""
    numbers = json.loads((DOCS / "images" / "snowball-power.json").read_text())
    found = {(row["what"], row["strength"]): row for row in numbers}
    assert found[PLAIN, 0]["worlds"] >= 80 and found[PLAIN, 0]["supported"] <= 0.05
    assert found[PLAIN, STRENGTH]["supported"] >= 0.9
    added = found[PLAIN, STRENGTH]["share"] - found[PLAIN, 0]["share"]
    assert added == pytest.approx(0.15, abs=0.02)
