"""Charts of any answer: exact values, categories as they come, and what is left out is said."""

import math

import polars as pl
import pytest

from analysis.behind import clickable
from analysis.result_chart import (
    KINDS,
    MOST_POINTS,
    Chart,
    Kind,
    draw,
    first_guess,
    missing,
    opens_rows,
)
from analysis.result_rows import groups_behind, rows_behind, trajectories

RUNS = ["1e5", "0012", "123456", "a1b2c3"]  # o57


def said(frame: pl.DataFrame, chart: Chart) -> str:
    return str(draw(frame, chart).layout.title.subtitle.text)


@pytest.mark.parametrize("kind", ["bar", "line", "scatter", "box", "histogram"])
def test_ids_are_categories_in_the_order_of_the_answer(kind: Kind) -> None:
    plot = draw(pl.DataFrame({"run": RUNS, "n": [3, 1, 2, 4]}), Chart(kind, "run", "n"))
    assert list(plot.data[0].x) == RUNS
    assert plot.layout.xaxis.type == "category"
    assert list(plot.layout.xaxis.categoryarray) == RUNS


def test_a_heatmap_of_ids_and_its_means() -> None:
    frame = pl.DataFrame({"run": ["1e5", "1e5", "0012"], "k": [2, 2, 1], "h": [1.0, 3.0, 7.0]})
    plot = draw(frame, Chart("heatmap", "run", "k", "h"))
    assert (list(plot.data[0].x), list(plot.data[0].y)) == (["1e5", "0012"], [1, 2])
    assert [list(row) for row in plot.data[0].z] == [[None, 7.0], [2.0, None]]
    counted = draw(frame, Chart("heatmap", "run", "k"))
    assert [list(row) for row in counted.data[0].z] == [[None, 1], [2, None]]


def test_bars_are_sums_and_say_so() -> None:
    frame = pl.DataFrame({"a": ["x", "y", "x"], "n": [1, 2, 3], "c": ["p", "p", "q"]})
    plot = draw(frame, Chart("bar", "a", "n"))
    assert (list(plot.data[0].x), list(plot.data[0].y)) == (["x", "y"], [4, 2])
    assert "sum" in said(frame, Chart("bar", "a", "n"))
    parted = draw(frame, Chart("bar", "a", "n", "c"))
    assert [(t.name, list(t.x), list(t.y)) for t in parted.data] == [
        ("p", ["x", "y"], [1, 2]),
        ("q", ["x"], [3]),
    ]
    assert list(draw(frame, Chart("bar", "a")).data[0].y) == [2, 1]


def test_a_histogram_of_whole_numbers_has_a_bar_for_each() -> None:
    plot = draw(pl.DataFrame({"k": [0, 0, 2, 8]}), Chart("histogram", "k"))
    assert list(plot.data[0].x) == list(range(9))
    assert list(plot.data[0].y) == [2, 0, 1, 0, 0, 0, 0, 0, 1]
    wide = draw(pl.DataFrame({"v": [i / 7 for i in range(1000)]}), Chart("histogram", "v"))
    assert len(wide.data[0].y) == 40 and sum(wide.data[0].y) == 1000


def test_boxes_are_quartiles_with_whiskers() -> None:
    frame = pl.DataFrame({"low": ["a"] * 6, "y": [1.0, 2.0, 3.0, 4.0, 5.0, 100.0]})
    box = draw(frame, Chart("box", "low", "y")).data[0]
    assert (box.q1[0], box.median[0], box.q3[0]) == (2.25, 3.5, 4.75)
    assert (box.lowerfence[0], box.upperfence[0]) == (1.0, 5.0)


def test_points_are_the_first_some_thousand_and_lead_to_their_trajectory() -> None:
    rows = MOST_POINTS + 10
    frame = pl.DataFrame({"trajectory": [f"r:{i}:0:0" for i in range(rows)], "y": range(rows)})
    frame = frame.with_columns(x=pl.col("y") * 0.5, h=pl.col("y").cast(pl.Float64))
    plot = draw(frame, Chart("scatter", "x", "y", "h"))
    assert len(plot.data[0].x) == MOST_POINTS
    assert plot.data[0].customdata[7] == {"trajectory": "r:7:0:0"}
    assert "first 5,000 of 5,010 rows" in plot.layout.title.subtitle.text
    assert plot.data[0].marker.colorscale is not None


def test_rows_without_a_value_are_left_out_and_counted() -> None:
    frame = pl.DataFrame({"x": [1.0, None, math.nan, math.inf, 5.0], "y": [1, 2, 3, 4, None]})
    plot = draw(frame, Chart("line", "x", "y"))
    assert list(plot.data[0].x) == [1.0]
    assert "4 rows without a value left out" in plot.layout.title.subtitle.text


def test_foreign_text_is_never_markup() -> None:
    evil = "<a href='https://x.y'>b</a>"
    frame = pl.DataFrame({evil: [evil, "t" * 500, "t" * 501], "n": [1, 2, 3]})
    for kind in KINDS:
        assert (
            "<a"
            not in draw(frame, Chart(kind, evil, "n", evil if kind != "heatmap" else "n")).to_json()
        )
    assert len(set(draw(frame, Chart("bar", evil, "n")).data[0].x)) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_twice_and_strange_names(kind: Kind) -> None:
    frame = pl.DataFrame({"values": [1, 2, 2], "x": [1, 1, 3], "y": ["a", "b", "b"]})
    for chart in (Chart(kind, "x", "x", "x"), Chart(kind, "values", "x"), Chart(kind, "y", "x")):
        assert missing(frame, chart) is None
        assert draw(frame, chart).data


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_guess_can_be_drawn_or_says_why_not(kind: Kind) -> None:
    frame = pl.DataFrame({"run": RUNS, "n": [1, 2, 3, 4], "list": [[1]] * 4})
    chart = first_guess(frame, kind)
    assert chart is not None and draw(frame, chart).data
    assert first_guess(frame.select("list"), kind) is None
    assert missing(frame.clear(), chart) == "The answer has no rows to draw."
    assert missing(frame, Chart(kind, "list")) is not None
    with pytest.raises(ValueError):
        draw(frame, Chart(kind, "gone"))


def test_what_a_row_leads_to() -> None:
    place = {"run": ["r", None], "step": [3, 4], "group": [1, 1], "slot": [0, 0]}
    frame = pl.DataFrame(place)
    assert trajectories(frame) == ["r:3:1:0", None]
    assert trajectories(frame.with_columns(trajectory=pl.Series(["t", None]))) == ["t", None]
    assert trajectories(pl.DataFrame({"source": ["s"]})) == ["s"]
    assert trajectories(pl.DataFrame({"trajectory": [7]})) is None
    assert rows_behind(frame.select("run", "step")) == [
        {"run": "r", "step_min": 3, "step_max": 3},
        {"step_min": 4, "step_max": 4},
    ]
    assert rows_behind(pl.DataFrame({"n": [1]})) == [{}]


def test_a_row_of_a_summary_leads_to_what_its_columns_name() -> None:
    frame = pl.DataFrame(
        {
            "arm": ["a", None],
            "seed": [3, 4],
            "step": [5, 6],
            "group_successes": [2, 1],
            "benchmark": [None, "b"],
            "correct": [0.5, 0.7],  # a rate is no flag
            "n": [1, 2],
        }
    )
    step = {"step_min": 5, "step_max": 5}
    assert rows_behind(frame) == [
        {"arms": ["a"], "seeds": [3], "bucket": [2], **step},
        {
            "seeds": [4],
            "bucket": [1],
            "step_min": 6,
            "step_max": 6,
            "benchmark": "b",
            "source": "evaluation",
        },
    ]


def test_a_bar_leads_to_all_its_rows() -> None:
    frame = pl.DataFrame(
        {
            "arm": ["a", "a", "b", "b"],
            "seed": [1, 0, 1, None],
            "step": [5, 9, 7, 7],
            "run": ["r", "s", "t", "t"],
            "n": [1, 2, 3, 4],
        }
    )
    behind = [
        {"arms": ["a"], "seeds": [0, 1], "step_min": 5, "step_max": 9},
        {"arms": ["b"], "run": "t", "step_min": 7, "step_max": 7},
    ]
    assert groups_behind(frame, "arm") == behind
    for kind in ("bar", "box"):
        marks = clickable(draw(frame, Chart(kind, "arm", "n")))
        assert [each for _, _, each in marks] == behind
    ids = pl.DataFrame({"k": [1, 1, 2], "trajectory": ["x", "y", "z"], "arm": ["a"] * 3})
    assert groups_behind(ids, "k") == [{"arms": ["a"]}, {"trajectory": "z"}]
    many = pl.DataFrame({"k": [1] * 21, "seed": list(range(21))})
    assert groups_behind(many, "k") == [{}]


@pytest.mark.parametrize("kind", KINDS)
def test_charts_without_rows_behind_are_known(kind: Kind) -> None:
    frame = pl.DataFrame({"n": [1, 2], "m": [1, 2], "arm": ["a", "b"]})
    never = kind in ("histogram", "heatmap")
    assert opens_rows(draw(frame, Chart(kind, "n", "m"))) is not never
    assert not opens_rows(draw(frame.drop("arm"), Chart(kind, "n", "m")))
