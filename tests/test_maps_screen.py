"""The maps of difficulty and entropy: axes and boxes as pure functions, and the screen."""

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lake_fixture import STEPS, STUDY, DemoResults
from screens import open_screen, texts, write_import
from streamlit.testing.v1 import AppTest

from analysis.browse import Filters
from analysis.browse_filters import active
from analysis.maps import (
    Axis,
    Box,
    axes,
    box_to_filters,
    box_words,
    cell_query,
    colour_range,
    draw_map,
    map_arms,
    placed,
    selected_row,
    step_window,
)
from app import state

STEP = Axis("step", 0.5, 5, 20)  # 100 steps, 5 a cell
BUCKET = Axis("bucket", -0.5, 1, 9)  # 0 .. 8 of 8
ENTROPY = Axis("entropy", 0.0, 0.1, 10)


def box(x: tuple[float, float], y: tuple[float, float]) -> dict[str, Any]:
    return {"points": [], "box": [{"x": list(x), "y": list(y)}]}


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ((21, 59), (2.6, 5.4), Box(step_min=21, step_max=60, bucket=(3, 4, 5))),
        ((59, 21), (5.4, 2.6), Box(step_min=21, step_max=60, bucket=(3, 4, 5))),
        ((-9, 999), (-9, 99), Box(step_min=1, step_max=100, bucket=tuple(range(9)))),
        ((24, 25), (4.1, 4.2), Box(step_min=21, step_max=25, bucket=(4,))),  # inside one cell
    ],
)
def test_a_box_means_the_cells_whose_centres_it_holds(x: Any, y: Any, expected: Box) -> None:
    assert box_to_filters(box(x, y), STEP, BUCKET) == expected


def test_the_last_cell_of_entropy_is_open_and_the_first_starts_at_0() -> None:
    assert box_to_filters(box((0.2, 0.4), (3, 4)), ENTROPY, BUCKET) == Box(
        bucket=(3, 4), entropy_min=0.2, entropy_max=0.4
    )
    assert box_to_filters(box((0.0, 0.4), (0, 0)), ENTROPY, BUCKET) == Box(
        bucket=(0,), entropy_min=0.0, entropy_max=0.4
    )
    assert box_to_filters(box((0.8, 2.0), (0, 0)), ENTROPY, BUCKET) == Box(
        bucket=(0,), entropy_min=0.8
    )


def test_a_box_over_all_entropies_leaves_out_what_is_unknown() -> None:
    whole = box_to_filters(box((0, 1), (0, 8)), ENTROPY, BUCKET)
    assert whole is not None
    assert (whole.entropy_min, whole.entropy_max) == (0.0, None)
    assert "entropy_min" in active(Filters(entropy_min=whole.entropy_min))


def test_a_click_is_its_cell_and_nothing_selected_is_no_box() -> None:
    clicked = {"points": [{"x": 23.0, "y": 0.35}], "box": []}
    assert box_to_filters(clicked, STEP, ENTROPY) == Box(
        step_min=21, step_max=25, entropy_min=0.3, entropy_max=0.4
    )
    assert box_to_filters({"points": [], "box": []}, STEP, ENTROPY) is None
    assert box_to_filters({}, STEP, ENTROPY) is None


def test_every_cell_gives_a_box_that_is_drawn_around_it() -> None:
    for axis in (STEP, BUCKET, ENTROPY):
        for cell in range(axis.cells):
            assert axis.cell(axis.centre(cell)) == cell
            assert axis.between(axis.centre(cell), axis.centre(cell)) == (cell, cell)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Box(21, 60, (3, 4, 5)), "steps 21 to 60, 3 to 5 of 8 right"),
        (Box(bucket=(0, 8)), "0, 8 of 8 right"),
        (Box(entropy_max=0.2), "entropy up to 0.2"),
        (Box(step_min=7, step_max=7, entropy_min=0.1), "steps 7, entropy from 0.1"),
        (Box(), ""),
    ],
)
def test_a_box_in_words(given: Box, words: str) -> None:
    assert box_words(given, 8) == words


@pytest.mark.parametrize(
    ("steps", "window"), [(1, 1), (30, 1), (31, 2), (60, 2), (61, 5), (300, 10), (10_000, 500)]
)
def test_a_map_has_at_most_30_windows(steps: int, window: int) -> None:
    assert step_window(steps) == window
    assert -(-steps // window) <= 30


def extent(**columns: Any) -> pl.DataFrame:
    one = {"last_step": 100, "group_size": 8, "greatest": 3.0, "mean": 0.2, "deviation": 0.05}
    return pl.DataFrame([one | columns])


def test_axes_follow_the_extent() -> None:
    assert axes("bucket_step", extent()) == (STEP, BUCKET)
    # The tail begins at 0.2 + 4 * 0.05 = 0.4: cells of 0.02, the last one holds all above.
    assert axes("bucket_entropy", extent()) == (Axis("entropy", 0.0, 0.02, 20), BUCKET)
    assert axes("bucket_entropy", extent(greatest=0.24))[0] == Axis("entropy", 0.0, 0.02, 12)
    assert axes("bucket_entropy", extent(greatest=0.0))[0].cells >= 1
    assert cell_query("entropy_step", extent()) == {
        "by_bucket": False,
        "window": 5,
        "width": 0.02,
        "bins": 20,
    }


CELLS = pl.DataFrame(
    {
        "arm": ["<b>a</b>"] * 2,
        "first_step": [1, 21],
        "bucket": [0, 3],
        "entropy_bin": [None, 2],
        "group_size": [8, 8],
        "trajectories": [10, 1000],
        "mean_entropy": [None, 0.25],
        "right_share": [0.0, 0.375],
        "flawed_share": [1.0, 0.5],
        "length": [10.0, 20.0],
    }
)


def test_the_map_has_a_point_on_every_coloured_cell() -> None:
    cells = placed(CELLS, STEP, BUCKET)
    plot = draw_map(cells, STEP, BUCKET, "flawed_share", Box(21, 60, (3, 4, 5)))
    heat, points = plot.data
    assert (list(points.x), list(points.y)) == ([3.0, 23.0], [0.0, 3.0])
    assert heat.z[0][0] == 1.0
    assert heat.z[3][4] == 0.5
    assert sum(value is not None for row in heat.z for value in row) == 2
    assert "steps 21 to 25, 3 of 8 right" in points.hovertext[1]
    (frame,) = plot.layout.shapes
    assert (frame.x0, frame.x1, frame.y0, frame.y1) == (20.5, 60.5, 2.5, 5.5)
    assert "<b>a" not in plot.layout.annotations[0].text  # an arm's name is text
    assert placed(CELLS, STEP, ENTROPY).height == 1  # an unknown entropy has no place


def test_every_arm_has_a_row_and_a_selection_tells_which() -> None:
    two = pl.concat([CELLS.with_columns(arm=pl.lit(arm)) for arm in ("on_policy", "exgrpo")])
    cells = placed(two, STEP, BUCKET)
    plot = draw_map(cells, STEP, BUCKET, "length", Box(bucket=(3,)), "exgrpo")
    arms = map_arms(cells)
    row = arms.index("exgrpo")
    (shape,) = plot.layout.shapes
    assert shape.yref == plot.data[2 * row].yaxis == plot.data[2 * row + 1].yaxis
    for number, arm in enumerate(arms):
        heat = plot.data[2 * number]
        assert arm in plot.layout.annotations[number].text
        framed = {"box": [{"x": [0, 9], "y": [0, 3], "xref": "x", "yref": heat.yaxis}]}
        assert selected_row(framed) == number
        assert selected_row({"points": [{"curve_number": 2 * number + 1}]}) == number
    assert plot.layout.yaxis.domain[0] > plot.layout.yaxis2.domain[1]  # the first row is above


def test_colours_are_of_all_maps() -> None:
    assert colour_range(CELLS, "trajectories") == pytest.approx((1, 3))  # powers of ten
    assert colour_range(CELLS, "right_share") == (0.0, 1.0)
    assert colour_range(CELLS, "mean_entropy") == (0.25, 1.25)  # one value: any range will do
    assert colour_range(CELLS.clear(), "length") == (0.0, 1.0)


def test_the_bar_of_the_colours_lies_below_the_maps() -> None:
    plot = draw_map(placed(CELLS, STEP, BUCKET), STEP, BUCKET, "length")
    bar = plot.layout.coloraxis.colorbar
    assert (bar.orientation, bar.yanchor) == ("h", "top")
    assert bar.y < 0


def test_commands_to_copy_quote_the_study(results: Path) -> None:
    def page() -> None:
        from app.components.map_figures import study_figure

        study_figure("it's; here", "markers", "t")

    test = AppTest.from_function(page).run()
    assert shlex.split(test.code[0].value) == ["exgrpo", "analyse", "--study", "it's; here"]


def param(test: AppTest, name: str) -> str:
    """A parameter of the address, which AppTest gives as text or as a list of one."""
    value = test.query_params[name]
    return value if isinstance(value, str) else str(value[0])


def test_the_address_opens_box_and_rows(results: Path, analysed: DemoResults) -> None:
    mine = [
        row
        for row in analysed.rows["trajectories"]
        if row["run"].startswith("exgrpo") and 2 <= row["step"] <= 4 and row["group_successes"] == 2
    ]
    given = {
        "study": STUDY,
        "value": "right_share",
        "arm": "exgrpo",
        "step_min": "2",
        "step_max": "4",
        "bucket": "2",
    }
    test = open_screen("maps", **given)
    assert f"{len(mine):,} trajectories in the box" in texts(test)
    assert "steps 2 to 4, 2 of 4 right" in texts(test)
    assert len(test.dataframe[0].value) == min(20, len(mine))
    assert len(test.get("plotly_chart")) == 1  # a row an arm
    assert {name: param(test, name) for name in given} == given


def test_a_typed_range_goes_into_the_address_and_the_box_can_be_cleared(results: Path) -> None:
    test = open_screen("maps", study=STUDY, map="entropy_step")
    assert "No box yet" in texts(test)
    next(item for item in test.number_input if item.label == "Steps from").set_value(3).run()
    assert param(test, "step_min") == "3"
    assert "steps from 3" in texts(test)
    next(button for button in test.button if button.label == "Clear the box").click().run()
    assert "step_min" not in test.query_params
    assert param(test, "map") == "entropy_step"


def test_a_figure_of_the_paper_is_read_when_the_address_names_it(results: Path) -> None:
    command = f"exgrpo figures --study {STUDY}"
    assert command not in texts(open_screen("maps", study=STUDY))
    test = open_screen("maps", study=STUDY, figure="markers")
    assert command in texts(test)
    assert param(test, "figure") == "markers"


@pytest.mark.parametrize(
    "nonsense",
    [
        {"map": "sphere", "value": "taste", "bucket": "many", "step_min": "x"},
        {"arms": "no such arm", "seeds": "77"},
        {"step_min": "9", "step_max": "2", "bucket": "-5", "entropy_min": "99"},
        {"arm": "no such arm", "step_max": str(STEPS)},
    ],
)
def test_nonsense_in_the_address_gives_no_traceback(results: Path, nonsense: Any) -> None:
    open_screen("maps", study=STUDY, **nonsense)


def test_an_import_without_entropies_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_import(tmp_path, ["a", "b"], [1, 2])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    assert "1 trajectory in the box" in texts(open_screen("maps", bucket="2"))
    assert "No entropy is known here" in texts(open_screen("maps", map="entropy_step"))
    assert "exgrpo analyse --study imports" in texts(open_screen("maps", figure="markers"))


def test_an_import_without_groups_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_import(tmp_path, ["a"], [None])
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    assert "No trajectory lies on this map" in texts(open_screen("maps"))


def test_the_ranges_of_a_box_are_filters_of_the_browser() -> None:
    names = {field.name for field in dataclasses.fields(Filters)}
    assert {field.name for field in dataclasses.fields(Box)} <= names
    assert state.change(Filters(), **dataclasses.asdict(Box(bucket=(1,)))).bucket == (1,)
