"""Curves of runs that are being trained, by step; a click on a point names its run and step."""

from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
import polars as pl

from analysis.alarms import smoothed
from analysis.live import PlannedRun
from analysis.theme import look

CURVES = {
    "reward": "reward",
    "entropy": "entropy (nat a token)",
    "length": "length (tokens)",
    "ratio_mean_fresh": "importance ratio, fresh tokens",
    "ratio_mean_replayed": "importance ratio, replayed tokens",
    "clipped_share": "share of tokens clipped",
    "buffer_questions": "questions in the replay buffer",
}
AROUND_ONE = ("ratio_mean_fresh", "ratio_mean_replayed")  # an axis from 0 would hide all of it
FIRST = ("reward", "entropy", "length")  # those shown unless others are chosen
POINTS = 120  # a line: each is a mean over more steps than lie between two
MARKERS = 12  # of them drawn: the browser takes long over each; all can be clicked
HEIGHT = 300  # px
MARGIN = {"l": 48, "r": 16, "t": 44, "b": 72}

Logged = list[tuple[PlannedRun, pl.DataFrame]]


def live_curves(runs: Logged, columns: Sequence[str] = tuple(CURVES)) -> dict[str, go.Figure]:
    """A figure for each of these CURVES that any run has logged, from the rows of table `steps`.

    A line a run, in the look of its arm, smoothed as for the alarms. Zoom and hidden arms stay as
    they are when the figure is drawn anew.
    """
    smooth = [
        (run, steps.select("step", *(smoothed(column) for column in columns)))
        for run, steps in runs
    ]
    figures = {column: _curve(column, CURVES[column], smooth) for column in columns}
    return {column: figure for column, figure in figures.items() if figure.data}


def clicked(points: list[dict[str, Any]], lines: list[str]) -> tuple[str, int] | None:
    """Run and step of the first of some clicked points; `lines`: the run of each line."""
    for point in points:
        number, step = point.get("curve_number"), point.get("x")
        if isinstance(number, int) and 0 <= number < len(lines) and isinstance(step, int | float):
            return lines[number], int(step)
    return None


def lines_of(figure: go.Figure) -> list[str]:
    """The run of each line of a figure, in order."""
    return [str(trace.meta) for trace in figure.data]


def _curve(column: str, title: str, runs: Logged) -> go.Figure:
    """runs: with the rows of `steps` smoothed."""
    seen: set[str] = set()
    traces = []
    for run, steps in runs:
        line = steps.select("step", column).drop_nulls()
        if line.is_empty():
            continue
        stride = -(-line.height // POINTS)
        line = line.reverse().gather_every(stride).reverse()  # the newest is always there
        style = look(run.arm)
        traces.append(
            {
                "type": "scatter",
                "x": line["step"].to_list(),
                "y": line[column].to_list(),
                "mode": "lines+markers",
                "meta": run.run,
                "name": escape(run.arm),
                "legendgroup": run.arm,
                "showlegend": run.arm not in seen,
                "line": {"color": style.colour, "dash": style.dash, "width": 1.8},
                "marker": {
                    "size": 4 if line.height > 1 else 8,
                    "symbol": style.symbol,
                    "maxdisplayed": MARKERS,
                },
                "hovertemplate": "step %{x}: %{y:.3f}<extra>" + escape(run.run) + "</extra>",
            }
        )
        seen.add(run.arm)
    layout = {
        "title": {"text": f"{title[0].upper()}{title[1:]}", "font": {"size": 14}},
        "yaxis": {"rangemode": "normal" if column in AROUND_ONE else "tozero"},
        "height": HEIGHT,
        "margin": MARGIN,
        "legend": {"y": -0.14},
        "uirevision": "kept",
    }
    return go.Figure({"data": traces, "layout": layout}, _validate=False)  # many, every few seconds
