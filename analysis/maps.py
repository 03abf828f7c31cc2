"""Maps of difficulty and entropy: their axes, how they are drawn, and the rows behind a box."""

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from analysis.arm_rows import row_axis, row_of, rows_layout
from analysis.observations.clustered import first_arms
from analysis.theme import FLAWED

Kind = Literal["bucket_step", "entropy_step", "bucket_entropy"]
Value = Literal["trajectories", "mean_entropy", "right_share", "flawed_share", "length"]
Name = Literal["step", "bucket", "entropy"]

KINDS: dict[Kind, tuple[str, Name, Name]] = {
    "bucket_step": ("bucket by step", "step", "bucket"),
    "entropy_step": ("entropy by step", "step", "entropy"),
    "bucket_entropy": ("bucket by entropy", "entropy", "bucket"),
}
VALUES: dict[Value, str] = {
    "trajectories": "how many",
    "mean_entropy": "mean entropy",
    "right_share": "right",
    "flawed_share": "flawed chains",
    "length": "length",
}
UNITS: dict[Value, str] = {
    "trajectories": "trajectories",
    "mean_entropy": "nat/token",
    "right_share": "share right",
    "flawed_share": "share flawed",
    "length": "tokens",
}
TITLES: dict[Name, str] = {
    "step": "training step",
    "bucket": "k right",
    "entropy": "nat/token",
}
MOST_COLUMNS = 30  # windows of steps on a map
ENTROPY_CELLS = 20  # about so many
TAIL = 4.0  # deviations above the mean: what lies higher is in the last bin
SCALE = "Viridis"  # even to the eye, and to the colour-blind
ROW, COLOURBAR = 170, 60  # px: height of the map of an arm, and room for the colours' bar below


@dataclass(frozen=True)
class Axis:
    """An axis of equal cells; `least` is the lower edge of the first. The last one of entropy has
    no upper edge."""

    name: Name
    least: float
    size: float
    cells: int

    def centre(self, cell: int) -> float:
        return round(self.least + (cell + 0.5) * self.size, 9)

    def edge(self, cell: int) -> float:
        """The lower edge of a cell."""
        return round(self.least + cell * self.size, 9)

    def cell(self, at: float) -> int:
        """The cell that holds a value; the nearest one for values beyond the axis."""
        return min(max(math.floor((at - self.least) / self.size), 0), self.cells - 1)

    def between(self, low: float, high: float) -> tuple[int, int]:
        """First and last cell whose centre lies from low to high; if none does, the one there."""
        first = math.ceil((low - self.least) / self.size - 0.5 - 1e-9)
        last = math.floor((high - self.least) / self.size - 0.5 + 1e-9)
        if first > last:
            first = last = self.cell((low + high) / 2)
        return max(first, 0), max(min(last, self.cells - 1), 0)

    def filters(self, first: int, last: int) -> dict[str, Any]:
        """The fields of `analysis.browse.Filters` that let cells first .. last through.

        An entropy that is just the upper edge passes as well, though the next cell holds it.
        """
        match self.name:
            case "step":
                return {
                    "step_min": int(self.edge(first) + 0.5),
                    "step_max": int(self.edge(last + 1)),
                }
            case "bucket":
                return {"bucket": tuple(range(first, last + 1))}
            case "entropy":
                return {
                    "entropy_min": self.edge(first),  # the first, too: what is unknown lies nowhere
                    "entropy_max": self.edge(last + 1) if last < self.cells - 1 else None,
                }


@dataclass(frozen=True)
class Box:
    """Ranges of a map, as fields of `analysis.browse.Filters`; None or empty: no bound."""

    step_min: int | None = None
    step_max: int | None = None
    bucket: tuple[int, ...] = ()
    entropy_min: float | None = None
    entropy_max: float | None = None


def axes(kind: Kind, extent: pl.DataFrame) -> tuple[Axis, Axis]:
    """Axes x and y of a map, from the rows (one or more) of query `map_extent`."""
    _, x, y = KINDS[kind]
    return _axis(x, extent), _axis(y, extent)


def _axis(name: Name, extent: pl.DataFrame) -> Axis:
    match name:
        case "step":
            steps = max(int(extent["last_step"].max() or 1), 1)  # type: ignore[arg-type]
            window = step_window(steps)
            return Axis("step", 0.5, window, -(-steps // window))
        case "bucket":
            return Axis("bucket", -0.5, 1, int(extent["group_size"].max() or 0) + 1)  # type: ignore[arg-type]
        case "entropy":
            most = _most_entropy(extent)
            width = _nice(most / ENTROPY_CELLS)
            return Axis("entropy", 0.0, width, max(1, math.ceil(most / width - 1e-9)))


def step_window(steps: int, most: int = MOST_COLUMNS) -> int:
    """Steps a window, 1, 2, 5, 10, 20, .., so that so many steps take at most `most` windows."""
    return max(1, round(_nice(steps / most)))


def _nice(least: float) -> float:
    """The smallest of 1, 2 and 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return round(next(n * power for n in (1, 2, 5, 10) if n * power >= least * (1 - 1e-9)), 9)


def _most_entropy(extent: pl.DataFrame) -> float:
    """Where the entropy axis ends: at the greatest, or where the tail begins."""
    known = extent.drop_nulls("greatest")
    tail = (pl.col("mean") + TAIL * pl.col("deviation")).max()
    ends = known.select(greatest=pl.col("greatest").max(), tail=tail).row(0)
    return max(min((float(end) for end in ends if end is not None), default=1.0), 1e-6)


def cell_query(kind: Kind, extent: pl.DataFrame) -> dict[str, Any]:
    """Parameters of query `map_cells` for a map."""
    found: dict[str, Any] = {"by_bucket": False}
    for axis in axes(kind, extent):
        match axis.name:
            case "step":
                found["window"] = int(axis.size)
            case "bucket":
                found["by_bucket"] = True
            case "entropy":
                found |= {"width": axis.size, "bins": axis.cells}
    return found


def placed(cells: pl.DataFrame, x: Axis, y: Axis) -> pl.DataFrame:
    """The rows of `map_cells` that lie on the map, with columns x and y: their cells."""
    columns = {
        "step": (pl.col("first_step") - 1) // max(1, int(x.size)),
        "bucket": pl.col("bucket"),
        "entropy": pl.col("entropy_bin"),
    }
    return cells.with_columns(x=columns[x.name], y=columns[y.name]).drop_nulls(["x", "y"])


def box_to_filters(selection: Mapping[str, Any], x: Axis, y: Axis) -> Box | None:
    """The whole cells that a selection of Streamlit's chart holds: its box, else its points.

    A cell is in a box when its centre is. None where nothing is selected.
    """
    boxes, points = selection.get("box") or [], selection.get("points") or []
    if boxes:
        xs, ys = boxes[-1]["x"], boxes[-1]["y"]
    elif points:
        xs, ys = [point["x"] for point in points], [point["y"] for point in points]
    else:
        return None
    found = x.filters(*x.between(min(xs), max(xs))) | y.filters(*y.between(min(ys), max(ys)))
    return Box(**found)


def selected_row(selection: Mapping[str, Any]) -> int:
    """On which row of `draw_map` a selection lies, from 0."""
    boxes, points = selection.get("box") or [], selection.get("points") or []
    if boxes:
        return row_of(boxes[-1].get("yref", "y"))
    return int(points[0]["curve_number"]) // 2 if points else 0


def box_words(box: Box, group_size: int) -> str:
    """`steps 21 to 60, 3 to 5 of 8 right, entropy below 0.2`; empty where nothing is bounded."""
    parts = [_range("steps", box.step_min, box.step_max)]
    if box.bucket:
        parts.append(f"{_runs(box.bucket)} of {group_size} right")
    parts.append(_range("entropy", box.entropy_min, box.entropy_max))
    return ", ".join(part for part in parts if part)


def _range(what: str, low: float | None, high: float | None) -> str:
    match low, high:
        case None, None:
            return ""
        case None, _:
            return f"{what} up to {high:g}"
        case _, None:
            return f"{what} from {low:g}"
    return f"{what} {low:g}" if low == high else f"{what} {low:g} to {high:g}"


def _runs(numbers: Sequence[int]) -> str:
    """`3 to 5` for neighbours, else `0, 3, 8`."""
    ordered = sorted(set(numbers))
    if len(ordered) > 1 and ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"{ordered[0]} to {ordered[-1]}"
    return ", ".join(map(str, ordered))


def colour_range(cells: pl.DataFrame, value: Value) -> tuple[float, float]:
    """Least and greatest value of all cells, for maps side by side; counts as powers of ten."""
    known = _coloured(cells, value).drop_nulls()
    if value == "right_share":
        return 0.0, 1.0
    low, high = (float(known.min() or 0), float(known.max() or 0)) if len(known) else (0.0, 1.0)  # type: ignore[arg-type]
    low = 0.0 if value == "flawed_share" else low
    return low, high if high > low else low + 1


def draw_map(
    cells: pl.DataFrame,
    x: Axis,
    y: Axis,
    value: Value,
    box: Box | None = None,
    framed: str | None = None,
) -> go.Figure:
    """The maps of all arms, a row each, in the same colours: a coloured cell each, and over it a
    point without ink to be selected.

    cells: rows of `placed`. box: drawn as a frame, on the map of the arm `framed`; None: on all.
    """
    arms = map_arms(cells)
    low, high = colour_range(cells, value)
    traces = [
        trace
        for row, arm in enumerate(arms)
        for trace in _row(cells.filter(pl.col("arm") == arm), x, y, value, row_axis(row))
    ]
    layout = rows_layout(arms, _axis_layout(x), _axis_layout(y), ROW, COLOURBAR)
    layout["coloraxis"] = {
        **{"colorscale": SCALE, "cmin": low, "cmax": high},
        "colorbar": {**_colourbar(value, (low, high)), "y": layout["legend"]["y"]},
    }
    layout["shapes"] = [
        _frame(x, y, box, row_axis(row))
        for row, arm in enumerate(arms)
        if box is not None and framed in (None, arm)
    ]
    return go.Figure({"data": traces, "layout": layout}, _validate=False)


def map_arms(cells: pl.DataFrame) -> list[str]:
    """The arms of a map from top to bottom."""
    return first_arms(cells["arm"].to_list())


def _row(cells: pl.DataFrame, x: Axis, y: Axis, value: Value, axis: str) -> list[dict[str, Any]]:
    grid: list[list[float | None]] = [[None] * x.cells for _ in range(y.cells)]
    for column, row, at in zip(cells["x"], cells["y"], _coloured(cells, value), strict=True):
        if 0 <= column < x.cells and 0 <= row < y.cells:
            grid[row][column] = at
    heat = {
        "type": "heatmap",
        "x": [x.centre(cell) for cell in range(x.cells)],
        "y": [y.centre(cell) for cell in range(y.cells)],
        "z": grid,
        "coloraxis": "coloraxis",
        "hoverinfo": "skip",
        "xgap": 1,
        "ygap": 1,
        "yaxis": axis,
    }
    # A heatmap reports no clicks; points do, and they can be framed too.
    points = {
        "type": "scatter",
        "x": [x.centre(cell) for cell in cells["x"]],
        "y": [y.centre(cell) for cell in cells["y"]],
        "mode": "markers",
        "marker": {"symbol": "square", "size": 10, "color": "rgba(0,0,0,0)"},
        "unselected": {"marker": {"opacity": 0}},
        "selected": {"marker": {"opacity": 0}},
        "hovertext": _hover(cells, x, y),
        "hovertemplate": "%{hovertext}<extra></extra>",
        "showlegend": False,
        "yaxis": axis,
    }
    return [heat, points]


def _axis_layout(axis: Axis) -> dict[str, Any]:
    return {
        "title": {"text": TITLES[axis.name]},
        "range": [axis.edge(0), axis.edge(axis.cells)],
        "showgrid": False,
        **({"dtick": 2} if axis.name == "bucket" and axis.cells <= 20 else {}),
    }


def _frame(x: Axis, y: Axis, box: Box, axis: str) -> dict[str, Any]:
    (left, right), (low, high) = (_ends(each, box) for each in (x, y))
    line = {"color": FLAWED, "width": 3}
    place = {"x0": left, "x1": right, "y0": low, "y1": high}
    return {"type": "rect", "xref": "x", "yref": axis, **place, "line": line}


def _coloured(cells: pl.DataFrame, value: Value) -> pl.Series:
    column = cells[value].cast(pl.Float64)
    return column.log10() if value == "trajectories" else column


def _colourbar(value: Value, colours: tuple[float, float]) -> dict[str, Any]:
    bar: dict[str, Any] = {
        **{
            "orientation": "h",
            "yanchor": "top",
            "ypad": 0,
        },  # below the maps: beside, a phone has no room
        **{"title": {"text": UNITS[value], "side": "top"}, "thickness": 12, "outlinewidth": 0},
    }
    if value == "trajectories":
        ticks = [n * 10**p for p in range(math.floor(colours[1]) + 1) for n in (1, 2, 5)]
        bar |= {"tickvals": list(map(math.log10, ticks)), "ticktext": [f"{n:,}" for n in ticks]}
    elif value in ("right_share", "flawed_share"):
        bar["tickformat"] = ".0%"
    return bar


def _hover(cells: pl.DataFrame, x: Axis, y: Axis) -> list[str]:
    return [_hover_of(row, x, y) for row in cells.iter_rows(named=True)]


def _hover_of(row: Mapping[str, Any], x: Axis, y: Axis) -> str:
    where = Box(**(x.filters(row["x"], row["x"]) | y.filters(row["y"], row["y"])))
    facts = [
        f"<b>{html.escape(box_words(where, row['group_size'] or 0))}</b>",
        f"{row['trajectories']:,} trajectories",
    ]
    for name, form, unit in (
        ("right_share", ".0%", "right"),
        ("flawed_share", ".0%", "of known chains flawed"),
        ("mean_entropy", ".3f", "nat/token"),
        ("length", ".1f", "tokens long"),
    ):
        if row[name] is not None:
            facts.append(f"{row[name]:{form}} {unit}")
    return "<br>".join(facts)


def _ends(axis: Axis, box: Box) -> tuple[float, float]:
    """From where to where a box goes on an axis; over all of it where it has no bound."""
    least, most = axis.edge(0), axis.edge(axis.cells)
    match axis.name:
        case "step":
            low = least if box.step_min is None else box.step_min - 0.5
            high = most if box.step_max is None else box.step_max + 0.5
        case "bucket":
            low = min(box.bucket) - 0.5 if box.bucket else least
            high = max(box.bucket) + 0.5 if box.bucket else most
        case "entropy":
            low = least if box.entropy_min is None else box.entropy_min
            high = most if box.entropy_max is None else box.entropy_max
    return max(low, least), min(high, most)
