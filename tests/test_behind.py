"""Every point of every figure opens rows: a made-up study and the golden one, through browse."""

import dataclasses
import json
import typing
from collections.abc import Iterator
from pathlib import Path

import duckdb
import plotly.graph_objects as go
import pytest
from lake_fixture import STUDY, DemoResults
from observed import says_empty

from analysis import browse
from analysis.behind import Behind, clickable, rollouts, samples, window
from analysis.browse import Filters
from analysis.catalog import open_catalog
from analysis.claims import load_ledger
from analysis.comparison import compare
from analysis.drawing import study_facts
from analysis.figures import FIGURES, Figure, all_figures
from analysis.observations.registry import OBSERVATIONS
from analysis.queries import answer
from pipeline.analyse import queries_needed

MOST_BYTES = 1_000_000  # of a figure, in a study of many steps


def drawn(connection: duckdb.DuckDBPyConnection, study: str) -> list[Figure]:
    frames = {name: answer(connection, name, study=study) for name in queries_needed(load_ledger())}
    comparison = compare(
        frames["arm_accuracy"], frames["arm_summary"], frames["validation_accuracy"]
    )
    return all_figures(study_facts(study, frames["study_runs"]), frames, comparison)


@pytest.fixture(scope="module", params=[STUDY, "golden"])
def study(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def catalog(
    study: str, demo: DemoResults, golden_path: Path
) -> Iterator[duckdb.DuckDBPyConnection]:
    with open_catalog(demo.catalog if study == STUDY else golden_path) as opened:
        yield opened


@pytest.fixture(scope="module")
def figures(catalog: duckdb.DuckDBPyConnection, study: str) -> list[Figure]:
    return drawn(catalog, study)


def test_behind_holds_only_what_is_given() -> None:
    assert rollouts("a", steps=window(11), correct=False, bucket=[], markers=None) == {
        "arms": ["a"],
        "step_min": 11,
        "step_max": 20,
        "correct": False,
    }
    assert samples("a", "b", benchmark="test_id", step=0) == {
        "source": "evaluation",
        "arms": ["a", "b"],
        "benchmark": "test_id",
        "step_min": 0,
        "step_max": 0,
    }
    assert rollouts(run="r") == {"run": "r"}


def test_clickable_are_markers_and_bars_and_no_bare_line() -> None:
    plot = go.Figure()
    plot.add_scatter(x=[1, 2], y=[1, 2], mode="lines", customdata=[{"run": "no"}] * 2)
    plot.add_scatter(x=[1, 2], y=[1, 2], mode="lines+markers", customdata=[{"run": "a"}, None])
    plot.add_bar(x=[1], y=[1])
    assert [(place, behind) for _, place, behind in clickable(plot)] == [
        (0, {"run": "a"}),
        (1, None),
        (0, None),
    ]


def test_every_point_opens_rows_that_are_there(
    figures: list[Figure], study: str, catalog: duckdb.DuckDBPyConnection
) -> None:
    assert {figure.name for figure in figures} == {*FIGURES, *(each.name for each in OBSERVATIONS)}
    hints = typing.get_type_hints(Filters)
    asked: dict[str, str] = {}
    for figure in figures:
        points = clickable(figure.plot)
        assert bool(points) != says_empty(figure.plot), figure.name
        for trace, place, behind in points:
            assert behind, f"{figure.name}: {trace.name}, point {place}"
            assert behind.keys() <= hints.keys() - {"study"}
            asked.setdefault(json.dumps(behind, sort_keys=True), figure.name)
    assert len(asked) > 50
    empty = [
        f"{name}: {behind}"
        for behind, name in asked.items()
        if not rows_behind(catalog, study, json.loads(behind))
    ]
    assert not empty, "\n".join(empty)


def rows_behind(catalog: duckdb.DuckDBPyConnection, study: str, behind: Behind) -> int:
    fixed = {
        name: tuple(value) if isinstance(value, list) else value for name, value in behind.items()
    }
    return browse.page(catalog, Filters(study=study, **fixed), 0, 1).total


def test_a_point_of_accuracy_opens_as_many_samples_as_were_graded(
    figures: list[Figure], study: str, catalog: duckdb.DuckDBPyConnection
) -> None:
    """Right ones over all of these samples are the very number that the point shows."""
    plots = {figure.name: figure.plot for figure in figures}
    for name in ("final_accuracy", "learning_curve"):
        checked = 0
        for trace, place, behind in clickable(plots[name]):
            assert behind is not None
            if trace.name is None:  # ticks of single seeds
                continue
            right, wrong, every = (
                rows_behind(catalog, study, behind | more)
                for more in ({"correct": True}, {"correct": False}, {})
            )
            if right + wrong < every:
                continue  # ungraded ones: questions then count by their graded samples
            value = trace.x[place] if name == "final_accuracy" else trace.y[place]
            assert right / every == pytest.approx(value)
            checked += 1
        assert checked


def test_figures_stay_small_with_what_is_behind_them(figures: list[Figure]) -> None:
    for figure in figures:
        whole = len(figure.plot.to_json())
        bare = len(go.Figure(figure.plot).update_traces(customdata=None).to_json())
        assert whole <= 3 * bare, (figure.name, bare, whole)
        assert whole <= MOST_BYTES


def test_lines_of_bands_are_skipped(figures: list[Figure]) -> None:
    bands = [
        trace
        for figure in figures
        for trace in figure.plot.data
        if trace.type == "scatter" and trace.fill == "toself"
    ]
    assert bands
    assert all(trace.mode == "lines" and trace.hoverinfo == "skip" for trace in bands)


def test_fields_are_those_of_the_browser() -> None:
    names = {field.name for field in dataclasses.fields(Filters)}
    assert {"source", "benchmark", "level"} <= names
