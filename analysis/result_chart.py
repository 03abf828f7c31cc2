"""A chart of any answer: one function from a frame and a choice of columns to a figure.

Texts are categories in the order of the answer, whatever numbers they look like. What stays out of
the figure, and what was added up for it, its title says.
"""

from dataclasses import dataclass
from html import escape
from typing import Any, Literal, get_args

import numpy as np
import plotly.graph_objects as go
import polars as pl
from polars import selectors

from analysis.behind import listed
from analysis.result_rows import groups_behind, rows_behind
from analysis.theme import HEIGHT, LOOKS, Look, look

Kind = Literal["line", "bar", "scatter", "histogram", "box", "heatmap"]
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST_POINTS = 5000
MOST_COLOURS = 12
MOST_CATEGORIES = 200
BINS = 40
GAP = 0.3  # between boxes, of the room of each: that of Plotly
LONGEST = 60  # characters of a label
SCALE = "Cividis"


@dataclass(frozen=True)
class Chart:
    """Which columns are drawn, and how. No y: rows are counted, where the kind can do so."""

    kind: Kind
    x: str
    y: str | None = None
    colour: str | None = None


def columns(frame: pl.DataFrame) -> list[str]:
    """The columns that a chart can have: texts, numbers, flags, dates and times of a day."""
    times = selectors.date() | selectors.datetime()
    return frame.select(
        selectors.numeric() | selectors.string() | selectors.boolean() | times
    ).columns


def numbers(frame: pl.DataFrame) -> list[str]:
    return frame.select(selectors.numeric()).columns


def first_guess(frame: pl.DataFrame, kind: Kind) -> Chart | None:
    """Columns to begin with: the first that fit. None when the answer has nothing to draw."""
    known, counted = columns(frame), numbers(frame)
    if not known:
        return None
    if kind == "histogram":
        return Chart(kind, (counted or known)[0])
    y = next((name for name in counted if name != known[0]), None)
    if kind == "heatmap":
        y = next((name for name in known if name != known[0]), None)
    return Chart(kind, known[0], y)


def missing(frame: pl.DataFrame, chart: Chart) -> str | None:
    """Why this chart cannot be drawn of this answer, in a sentence; None when it can."""
    if frame.is_empty():
        return "The answer has no rows to draw."
    for name in (chart.x, chart.y, chart.colour):
        if name is not None and name not in columns(frame):
            return "The answer has no such column to draw; choose another."
    needs_y = chart.kind in ("line", "scatter", "box", "heatmap")
    if needs_y and chart.y is None:
        return f"A {chart.kind} chart needs a column for y."
    if chart.kind in ("box", "bar") and chart.y and chart.y not in numbers(frame):
        return f"A {chart.kind} chart needs a column of numbers for y."
    if chart.kind == "heatmap" and chart.colour and chart.colour not in numbers(frame):
        return "A heatmap is coloured by a column of numbers, or by the number of rows."
    return None


def draw(frame: pl.DataFrame, chart: Chart) -> go.Figure:
    """The figure. Raises ValueError with the sentence of `missing`.

    At most `MOST_POINTS` points of a line or scatter, the first ones; bars are sums of y, or
    counts of rows; a box is the quartiles with whiskers to the farthest value within 1.5 of their
    distance; a cell of a heatmap is the mean of the colour, or the count. Rows without a value in
    a column that is drawn are left out.
    """
    if said := missing(frame, chart):
        raise ValueError(said)
    drawn = _whole(frame.with_columns(selectors.decimal().cast(pl.Float64)), chart)
    notes = _left_out(frame.height - drawn.height)
    kinds = {
        "line": _points,
        "scatter": _points,
        "bar": _bars,
        "histogram": _histogram,
        "box": _boxes,
        "heatmap": _cells,
    }
    plot = go.Figure()
    notes += kinds[chart.kind](plot, drawn, chart)
    subtitle = {"text": escape("; ".join(notes))}
    plot.update_layout(height=HEIGHT, title={"text": _title(chart), "subtitle": subtitle})
    _axis(plot, "xaxis", drawn, chart.x)
    if chart.kind == "histogram" or chart.y is None:
        plot.update_layout(yaxis_title="rows")
    else:
        _axis(plot, "yaxis", drawn, chart.y)
    return plot


def opens_rows(plot: go.Figure) -> bool:
    """Whether any mark of the figure has rows behind it."""
    return any(getattr(trace, "customdata", None) is not None for trace in plot.data)


def _whole(frame: pl.DataFrame, chart: Chart) -> pl.DataFrame:
    """The rows with a value, and no infinite one, in every column that is drawn."""
    for name in (chart.x, chart.y, chart.colour):
        if name is not None:
            known = pl.col(name).is_not_null()
            finite = pl.col(name).is_finite() if frame.schema[name].is_float() else pl.lit(True)
            frame = frame.filter(known & finite)
    return frame


def _left_out(rows: int) -> list[str]:
    return [f"{rows:,} rows without a value left out"] if rows else []


def _title(chart: Chart) -> str:
    what = "rows" if chart.y is None or chart.kind == "histogram" else chart.y
    by = f" by {chart.colour}" if chart.colour else ""
    return escape(f"{what} over {chart.x}{by}")


def _points(plot: go.Figure, frame: pl.DataFrame, chart: Chart) -> list[str]:
    assert chart.y is not None
    notes = []
    if frame.height > MOST_POINTS:
        notes.append(f"the first {MOST_POINTS:,} of {frame.height:,} rows are drawn")
        frame = frame.head(MOST_POINTS)
    behind = rows_behind(frame)
    frame = frame.with_row_index("\0row")
    scaled = chart.kind == "scatter" and _is_scale(frame, chart.colour)
    parts, more = _parts(frame, None if scaled else chart.colour)
    for name, style, part in parts:
        marker: dict[str, Any] = {"color": style.colour, "symbol": style.symbol, "size": 6}
        if scaled:
            bar = {"title": {"text": escape(chart.colour or "")}}
            values = part[str(chart.colour)].to_list()
            marker |= {"color": values, "colorscale": SCALE, "colorbar": bar, "showscale": True}
        plot.add_scatter(
            x=_values(frame, chart.x, part[chart.x]),
            y=_values(frame, chart.y, part[chart.y]),
            name=name,
            mode="lines+markers" if chart.kind == "line" else "markers",
            marker=marker,
            line={"color": style.colour, "dash": style.dash},
            customdata=listed([behind[row] for row in part["\0row"]]),
            showlegend=len(parts) > 1,
        )
    return notes + more


def _bars(plot: go.Figure, frame: pl.DataFrame, chart: Chart) -> list[str]:
    parts, notes = _parts(frame, chart.colour)
    value = pl.len() if chart.y is None else pl.sum(chart.y)
    together = 0
    for name, style, part in parts:
        bars = part.group_by(chart.x, maintain_order=True).agg(**{"\0bar": value})
        together += part.height - bars.height
        plot.add_bar(
            x=_values(frame, chart.x, bars[chart.x]),
            y=bars["\0bar"].to_list(),
            name=name,
            marker_color=style.colour,
            customdata=listed(groups_behind(part, chart.x)),
            showlegend=len(parts) > 1,
        )
    if chart.y is not None and together:
        notes.append(f"each bar is the sum of its rows, up to {together + 1:,}")
    plot.update_layout(barmode="group")
    return notes


def _histogram(plot: go.Figure, frame: pl.DataFrame, chart: Chart) -> list[str]:
    if chart.x not in numbers(frame):
        return _bars(plot, frame, Chart("bar", chart.x, None, chart.colour))
    edges = _edges(frame[chart.x])
    parts, notes = _parts(frame, chart.colour)
    for name, style, part in parts:
        counts, _ = np.histogram(part[chart.x].to_numpy(), edges)
        plot.add_bar(
            x=((edges[:-1] + edges[1:]) / 2).tolist(),
            y=counts.tolist(),
            width=np.diff(edges).tolist(),
            name=name,
            marker_color=style.colour,
            opacity=1 if len(parts) == 1 else 0.6,
            showlegend=len(parts) > 1,
        )
    plot.update_layout(barmode="overlay", bargap=0)
    return notes


def _boxes(plot: go.Figure, frame: pl.DataFrame, chart: Chart) -> list[str]:
    assert chart.y is not None
    parts, notes = _parts(frame, chart.colour)
    for name, style, part in parts:
        rows = part.select(x=pl.col(chart.x), y=pl.col(chart.y))
        boxes = rows.group_by("x", maintain_order=True).agg(
            pl.col("y"),
            low=pl.col("y").quantile(0.25, "linear"),
            middle=pl.median("y"),
            high=pl.col("y").quantile(0.75, "linear"),
        )
        reach = 1.5 * (pl.col("high") - pl.col("low"))
        ends = (
            boxes.explode("y")
            .filter(pl.col("y").is_between(pl.col("low") - reach, pl.col("high") + reach))
            .group_by("x")
            .agg(bottom=pl.min("y"), top=pl.max("y"))
        )
        boxes = boxes.join(ends, on="x", how="left", maintain_order="left")
        plot.add_box(
            x=_values(frame, chart.x, boxes["x"]),
            q1=boxes["low"].to_list(),
            median=boxes["middle"].to_list(),
            q3=boxes["high"].to_list(),
            lowerfence=boxes["bottom"].to_list(),
            upperfence=boxes["top"].to_list(),
            name=name,
            offsetgroup=name,
            legendgroup=name,
            marker_color=style.colour,
            showlegend=len(parts) > 1,
        )
        plot.add_scatter(  # a box without its values cannot be clicked: its median can
            x=_values(frame, chart.x, boxes["x"]),
            y=boxes["middle"].to_list(),
            name=name,
            mode="markers",
            offsetgroup=name,
            legendgroup=name,
            marker={"color": style.colour, "symbol": style.symbol, "size": 7},
            customdata=listed(groups_behind(part, chart.x)),
            showlegend=False,
        )
    gaps = {"boxgap": GAP, "boxgroupgap": GAP, "scattergap": GAP}
    plot.update_layout(boxmode="group", scattermode="group", **gaps)
    return [*notes, "values beyond the whiskers are not drawn"]


def _cells(plot: go.Figure, frame: pl.DataFrame, chart: Chart) -> list[str]:
    assert chart.y is not None
    binned, notes = frame, []
    for name in dict.fromkeys((chart.x, chart.y)):
        if name in numbers(frame) and frame[name].n_unique() > BINS:
            binned = binned.with_columns(_middles(frame[name]))
            notes.append(f"{name} in {BINS} equal parts")
    rows = binned.select(
        x=pl.col(chart.x), y=pl.col(chart.y), value=pl.col(chart.colour) if chart.colour else 1
    )
    cells = rows.group_by("x", "y").agg(pl.mean("value") if chart.colour else pl.len())
    across, up = (_places(rows[name]) for name in ("x", "y"))
    grid: list[list[Any]] = [[None] * len(across) for _ in up]
    for x, y, value in cells.iter_rows():
        grid[up[y]][across[x]] = value
    what = "rows" if chart.colour is None else f"mean {chart.colour}"
    bar = {"title": {"text": escape(what)}}
    plot.add_heatmap(
        x=_values(frame, chart.x, pl.Series(list(across))),
        y=_values(frame, chart.y, pl.Series(list(up))),
        z=grid,
        colorscale=SCALE,
        colorbar=bar,
    )
    return [*notes, f"colour: {what}"]


def _places(column: pl.Series) -> dict[Any, int]:
    values = column.unique(maintain_order=True)
    ordered = values if _is_category(column) else values.sort()
    return {value: place for place, value in enumerate(ordered)}


def _edges(values: pl.Series) -> np.ndarray:
    if values.dtype.is_integer() and 0 < values.n_unique() <= BINS:
        low, high = values.min(), values.max()
        assert isinstance(low, int) and isinstance(high, int)
        if high - low < BINS:  # a part for each whole number
            return np.arange(low, high + 2) - 0.5
    edges: np.ndarray = np.histogram_bin_edges(values.cast(pl.Float64).to_numpy(), BINS)
    return edges


def _middles(values: pl.Series) -> pl.Series:
    edges = np.histogram_bin_edges(values.cast(pl.Float64).to_numpy(), BINS)
    part = np.clip(np.searchsorted(edges, values.to_numpy(), side="right") - 1, 0, BINS - 1)
    return pl.Series(values.name, ((edges[:-1] + edges[1:]) / 2)[part])


def _is_category(column: pl.Series) -> bool:
    return column.dtype in (pl.String, pl.Boolean)


def _is_scale(frame: pl.DataFrame, colour: str | None) -> bool:
    return colour in numbers(frame) and frame[colour].n_unique() > MOST_COLOURS


def _parts(
    frame: pl.DataFrame, colour: str | None
) -> tuple[list[tuple[str, Look, pl.DataFrame]], list[str]]:
    """Name, look and rows of each colour; a sentence where there are too many."""
    looks = list(LOOKS.values())
    if colour is None:
        return [("", looks[1], frame)], []
    values = frame[colour].unique(maintain_order=True)
    shown = values.head(MOST_COLOURS)
    parts = []
    for place, value in enumerate(shown):
        style = look(value) if colour == "arm" else looks[(place + 1) % len(looks)]
        parts.append((escape(_short(str(value))), style, frame.filter(pl.col(colour) == value)))
    if len(values) == len(shown):
        return parts, []
    return parts, [f"the first {MOST_COLOURS} of {len(values):,} values of {colour} are drawn"]


def _values(frame: pl.DataFrame, name: str, values: pl.Series) -> list[Any]:
    """Values of a column of the frame as Plotly takes them: categories as labels."""
    if not _is_category(frame[name]):
        return values.to_list()
    labels = _labels(frame[name])
    return [labels[value] for value in values]


def _labels(column: pl.Series) -> dict[Any, str]:
    """A label for each category, no two alike, in the order of the answer."""
    labels: dict[Any, str] = {}
    seen: set[str] = set()
    for place, value in enumerate(column.unique(maintain_order=True)):
        text = _short(str(value))
        labels[value] = escape(f"{text} ({place + 1})" if text in seen else text)
        seen.add(text)
    return labels


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[:LONGEST] + "…"


def _axis(plot: go.Figure, axis: str, frame: pl.DataFrame, name: str) -> None:
    layout: dict[str, Any] = {"title": {"text": escape(name)}}
    if _is_category(frame[name]):
        order = list(_labels(frame[name]).values())
        layout |= {"type": "category", "categoryorder": "array", "categoryarray": order}
        if len(order) > MOST_CATEGORIES:
            layout |= {"showticklabels": False}
    plot.update_layout({axis: layout})
