"""The experience buffer: the rule of the draws, concentration, figures, and the screen."""

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from lake_fixture import STEPS, STUDY, DemoResults
from screens import open_screen, texts, write_import

from analysis import buffer_figures as figures
from analysis.browse import Filters, page
from analysis.buffer_filling import event_rates, occupancy
from analysis.concentration import (
    curves,
    gini,
    lorenz,
    mean_over_runs,
    over_time,
    replaying,
    reuse,
    top_share,
)
from analysis.draw_rule import PLAYS, ArmDraws, arm_draws, bucket_weights, play, strayed
from analysis.queries import answer
from app import state
from app.components.buffer_views import VIEWS, draws_words
from exgrpo import selection
from exgrpo.buckets import Buckets
from exgrpo.settings import Experience

RULES: list[dict[str, Any]] = [
    {"draw": "gaussian", "mu": 0.5, "sigma": 1.0, "sigma_unit": "count"},
    {"draw": "gaussian", "mu": 0.25, "sigma": 1.0, "sigma_unit": "accuracy"},
    {"draw": "linear"},
    {"draw": "sqrt"},
    {"draw": "uniform"},
    {"draw": "questions"},
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["draw"])
def test_weights_are_those_of_the_trainer(rule: dict[str, Any]) -> None:
    settings = Experience.model_validate(rule)
    expected = selection.bucket_weights(8, settings)
    found = bucket_weights(rule["draw"], 8, settings.mu, settings.sigma, settings.sigma_unit)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found == pytest.approx(expected)


def test_a_rule_that_is_not_known_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rule 'by taste'"):
        bucket_weights("by taste", 8, 0.5, 1.0, "count")


SIZES = [5, 1, 3, 0, 9, 2, 1]


@pytest.mark.parametrize("count", [1, 8, 16])
@pytest.mark.parametrize("rule", [RULES[0], RULES[2], RULES[5]], ids=lambda rule: rule["draw"])
def test_played_draws_are_distributed_as_those_of_the_trainer(
    rule: dict[str, Any], count: int
) -> None:
    """Means and variances of 2000 draws each, within five standard errors."""
    weights = selection.bucket_weights(8, Experience.model_validate(rule))
    members = {k: [f"{k}-{i}" for i in range(size)] for k, size in enumerate(SIZES, 1) if size}
    rng = np.random.default_rng(1)
    drawn = np.zeros((2000, 7))
    for row in drawn:
        for each in selection.draw_questions(Buckets.of_members(members), count, weights, rng):
            row[each.bucket - 1] += 1
    played = play(np.array([SIZES]), np.array([count]), weights, 2000)
    assert played.sum(axis=1).tolist() == [count] * 2000
    assert (played <= SIZES).all()
    error = 5 * np.sqrt((drawn.var(axis=0) + played.var(axis=0)) / 2000) + 1e-3
    assert (abs(drawn.mean(axis=0) - played.mean(axis=0)) < error).all()


def test_where_nothing_is_left_to_chance_every_play_is_alike() -> None:
    """A buffer that is drawn empty, and one bucket alone; totals are over the steps."""
    sizes, counts = np.array([[2, 0, 3], [0, 0, 4]]), np.array([5, 2])
    assert play(sizes, counts, np.ones(3), 10).tolist() == [[2, 0, 5]] * 10
    out_of_reach = np.array([0.0, 1.0, 0.0])  # no bucket of any weight has a question
    assert play(sizes[:1], counts[:1], out_of_reach, 10).tolist() == [[2, 0, 3]] * 10


def test_how_far_draws_stray() -> None:
    played = play(np.full((50, 2), 100), np.full(50, 10), np.ones(2), PLAYS)
    assert strayed(np.array([250.0, 250.0]), played) > 0.5
    assert strayed(np.array([500.0, 0.0]), played) == 1 / (PLAYS + 1)


def test_draws_of_the_golden_lake_fit_their_rule(golden: duckdb.DuckDBPyConnection) -> None:
    runs = tuple(answer(golden, "study_runs", study="golden")["run"])
    found = {each.arm: each for each in arm_draws(golden, "golden", runs)}
    assert found.keys() == {"exgrpo", "highest_entropy"}
    for arm in found.values():
        drawn = answer(golden, "buffer_draws", study="golden").filter(pl.col("arm") == arm.arm)
        assert arm.frame["drawn"].sum() == drawn["drawn"].sum()
        assert arm.frame["expected"].sum() == pytest.approx(drawn["drawn"].sum())
        assert arm.runs == 2
        assert arm.without == 0
        assert "The draws fit the rule" in draws_words(arm)
        (drawn_behind,) = {str(figures.draws(arm).data[1].customdata[2])}
        assert drawn_behind == str({"arms": [arm.arm], "bucket_drawn": [3], "replayed": True})


def test_gini_top_and_lorenz_of_known_uses() -> None:
    even, one = np.full(100, 3.0), np.array([0.0] * 99 + [7.0])
    assert gini(even) == pytest.approx(0)
    assert gini(one) == pytest.approx(0.99)
    assert gini(np.array([1.0, 3.0])) == pytest.approx(0.25)
    assert gini(np.zeros(4)) is None
    assert (top_share(even, 0.01), top_share(one, 0.01)) == (pytest.approx(0.01), 1.0)
    assert top_share(np.zeros(4), 0.1) is None
    assert lorenz(even) == pytest.approx(np.linspace(0, 1, 51))
    assert lorenz(one).tolist() == pytest.approx([0.0] * 50 + [1.0])


def test_a_run_without_a_count_counts_as_none() -> None:
    counts = pl.DataFrame({"arm": "a", "run": ["r", "s"], "times": [0, 1], "count": [4, 2]})
    assert mean_over_runs(counts).rows() == [("a", 0, 2.0), ("a", 1, 1.0)]


def test_a_point_of_the_occupancy_names_its_bucket_and_steps(
    golden: duckdb.DuckDBPyConnection,
) -> None:
    rows = answer(golden, "bucket_occupancy", study="golden", every=5)
    mine = rows.filter(pl.col("arm") == "exgrpo")
    plot = occupancy(mine, ["exgrpo"])
    first, *_, retired = plot.data
    assert [trace.name for trace in plot.data] == [*(f"k = {k}" for k in range(1, 8)), "retired"]
    assert list(first.x) == [5, 10, 15, 16]
    assert [behind["step_min"] for behind in first.customdata] == [1, 6, 11, 16]
    assert first.customdata[1] == {
        "arms": ["exgrpo"],
        "bucket": [1],
        "step_min": 6,
        "step_max": 10,
    }
    expected = [mine.filter(bucket=1, step=step)["questions"].mean() for step in first.x]
    assert list(first.y) == expected
    assert retired.customdata is None


def test_events_are_a_row_an_arm_and_a_step(golden: duckdb.DuckDBPyConnection) -> None:
    rows = answer(golden, "buffer_events", study="golden", window=5)
    arms = ["exgrpo", "highest_entropy"]
    steps = answer(golden, "buffer_dynamics", study="golden")
    plot = event_rates(rows, steps, arms, 5)
    stored = [trace for trace in plot.data if trace.name == "stored"]
    assert [trace.yaxis for trace in stored] == ["y", "y2"]
    assert [trace.showlegend for trace in stored] == [True, False]
    first = rows.filter(arm="highest_entropy", event="stored", first_step=1)
    assert stored[1].y[0] == first["events"].sum() / 2 / 5  # of two runs, in five steps
    assert stored[1].customdata[0] == {"arms": ["highest_entropy"], "step_min": 1, "step_max": 5}


def events_of(counts: dict[int, int], run: str = "r") -> pl.DataFrame:
    """Rows of `buffer_events`: so many stored in the window from each step on."""
    firsts, events = list(counts), list(counts.values())
    return pl.DataFrame({"arm": "a", "run": run, "event": "stored"}).join(
        pl.DataFrame({"first_step": firsts, "events": events}), how="cross"
    )


def test_events_are_counted_a_logged_step() -> None:
    """25 steps in windows of 10, one stored in each but the 10 of the middle."""
    steps = pl.DataFrame({"arm": "a", "step": range(1, 26)})
    (line,) = event_rates(events_of({1: 10, 21: 5}), steps, ["a"], 10).data
    assert (list(line.x), list(line.y)) == ([5.5, 15.5, 23.0], [1.0, 0.0, 1.0])


def test_a_run_that_ended_counts_its_own_steps_only() -> None:
    rows = pl.concat([events_of({1: 10, 11: 10}), events_of({1: 5}, "short")])
    steps = pl.DataFrame({"arm": "a", "step": [*range(1, 21), *range(1, 6)]})
    (line,) = event_rates(rows, steps, ["a"], 10).data
    assert list(line.y) == [1.0, 1.0]


USES = pl.DataFrame(
    {
        "arm": ["anew", "again"] * 2,
        "seed": 0,
        "run": ["r", "s"] * 2,
        "first_step": [11, 11, 21, 21],
        "question": "q",
        "draws": 2,
        "replays": [0, 2] * 2,
    }
)


def test_concentration_ends_at_the_last_step_and_opens_what_its_arm_replays() -> None:
    assert replaying(USES) == {"again"}
    ends = {"anew": 25, "again": 25}
    plot = figures.concentration(over_time(USES, "draws"), "top_1", 10, ends, replaying(USES))
    lines = {trace.name: trace for trace in plot.data if trace.customdata}
    assert list(lines["again"].x) == [20, 25]
    assert [lines[arm].customdata[0]["replayed"] for arm in ("anew", "again")] == [False, True]
    curve = figures.lorenz_curves(curves(USES, "draws"), replaying(USES))
    assert {trace.name: trace.customdata[0]["replayed"] for trace in curve.data} == {
        "anew": False,
        "again": True,
    }
    used = figures.reuse_counts(reuse(USES, "draws"), "questions", "drawn", replaying(USES))
    assert {trace.name: trace.customdata[0]["replayed"] for trace in used.data} == {
        "anew": False,
        "again": True,
    }


def test_an_arm_that_draws_questions_only_opens_fresh_rows_of_the_bucket_drawn_from() -> None:
    frame = pl.DataFrame(
        {"bucket": [2], "drawn": [3.0], "expected": [3.0], "low": [2.0], "high": [4.0]}
    )
    plot = figures.draws(ArmDraws("question_replay", frame, 1.0, 1, 5, 0, replays=False))
    assert plot.data[1].customdata[0] == {
        "arms": ["question_replay"],
        "bucket_drawn": [2],
        "replayed": False,
    }


def test_a_point_of_the_draws_opens_as_many_replayed_rows_as_it_counts(
    golden: duckdb.DuckDBPyConnection,
) -> None:
    runs = tuple(answer(golden, "study_runs", study="golden")["run"])
    exgrpo = next(each for each in arm_draws(golden, "golden", runs) if each.arm == "exgrpo")
    drawn = dict(exgrpo.frame.select("bucket", "drawn").iter_rows())
    for behind in figures.draws(exgrpo).data[1].customdata:
        filters = state.change(Filters(), study="golden", **behind)
        assert page(golden, filters, 0, 1).total == drawn[behind["bucket_drawn"][0]]


def test_arms_without_a_buffer_are_not_shown_first(golden: duckdb.DuckDBPyConnection) -> None:
    last = answer(golden, "bucket_occupancy", study="golden", every=10**9)
    assert figures.arms_with_buffer(last) == ["exgrpo", "highest_entropy"]


@pytest.mark.parametrize("view", VIEWS)
def test_each_view_opens_at_its_address(view: str, results: Path) -> None:
    test = open_screen("buffer", study=STUDY, view=view, arms="exgrpo")
    assert not test.warning
    assert test.get("plotly_chart") or test.dataframe or test.info


def test_a_snapshot_of_the_step_that_the_address_names(
    results: Path, analysed: DemoResults
) -> None:
    run = next(run for run in analysed.study.runs if run.startswith("exgrpo"))
    stored = {
        row["question"]
        for row in analysed.rows["experience"]
        if row["run"] == run and row["event"] == "stored" and row["step"] <= 3
    }
    test = open_screen("buffer", study=STUDY, view="snapshot", run=run, step="3")
    assert set(test.dataframe[0].value["question"]) == stored
    assert "after step 3" in texts(test)
    most = test.dataframe[1].value
    again = [row for row in analysed.rows["trajectories"] if row["run"] == run and row["replayed"]]
    assert most["replays"].sum() == len(again)
    test = open_screen("buffer", study=STUDY, view="snapshot", run=run, step="999")
    assert next(item for item in test.number_input if item.label == "After step").value == STEPS


def test_a_choice_goes_into_the_address(results: Path) -> None:
    test = open_screen(
        "buffer", study=STUDY, view="concentration", counted="replays", measure="top_10"
    )
    assert "share of the top 10 %, of all replays so far" in "\n".join(
        item.value for item in test.text
    )


@pytest.mark.parametrize(
    "nonsense",
    [
        {"view": "upside down", "counted": "sheep", "step": "x"},
        {"arms": "no such arm", "seeds": "99"},
        {"view": "snapshot", "run": "no such run", "step": "-4"},
    ],
)
def test_nonsense_in_the_address_gives_no_traceback(results: Path, nonsense: Any) -> None:
    open_screen("buffer", study=STUDY, **nonsense)


def test_an_arm_without_a_buffer_is_said(
    golden_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(golden_path.parent))
    test = open_screen("buffer", study="golden", arms="on_policy")
    assert "Without a replay buffer" in test.info[0].value
    assert test.code[0].value == "on_policy"


def test_an_import_tells_of_no_buffer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_import(tmp_path, ["a"], [1])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    assert "tells of no buffer" in open_screen("buffer").info[0].value
