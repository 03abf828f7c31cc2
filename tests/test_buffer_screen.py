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
from analysis.buffer_filling import event_rates, occupancy
from analysis.concentration import gini, lorenz, mean_over_runs, top_share
from analysis.draw_rule import PLAYS, arm_draws, bucket_weights, play, strayed
from analysis.queries import answer
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
        assert drawn_behind == str({"arms": [arm.arm], "bucket": [3], "replayed": True})


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
    plot = event_rates(rows, arms, 5)
    stored = [trace for trace in plot.data if trace.name == "stored"]
    assert [trace.yaxis for trace in stored] == ["y", "y2"]
    assert [trace.showlegend for trace in stored] == [True, False]
    first = rows.filter(arm="highest_entropy", event="stored", first_step=1)
    assert stored[1].y[0] == first["events"].sum() / 2 / 5  # of two runs, in five steps
    assert stored[1].customdata[0] == {"arms": ["highest_entropy"], "step_min": 1, "step_max": 5}


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
