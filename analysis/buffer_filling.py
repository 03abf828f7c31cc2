"""Figures of what the experience buffer holds and of what happens in it, an arm a row. Each point's
`customdata` names the rows behind it, as fields of `analysis.browse.Filters`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.colors import sample_colorscale

from analysis.arm_rows import row_axis, rows_layout
from analysis.buffer_figures import middle, plain_figure, steps_of
from analysis.drawing import say_empty
from analysis.theme import (
    BLUE,
    GREEN,
    INK,
    MUTED,
    ORANGE,
    PINK,
    SKY,
    VERMILLION,
    Look,
    faded,
)

ROW, LEGEND = 210, 50  # px: height of an arm's row, and of the legend below the last
HIT = 9  # px: size of a point that is there to be clicked
EVENTS = {
    "entered": Look(BLUE, "circle", "solid"),
    "stored": Look(SKY, "square", "dot"),
    "moved": Look(INK, "diamond", "dash"),
    "replayed": Look(VERMILLION, "triangle-up", "solid"),
    "retired": Look(GREEN, "triangle-down", "dashdot"),
    "returned": Look(PINK, "cross", "longdash"),
    "left": Look(MUTED, "x", "longdashdot"),
    "evicted": Look(ORANGE, "star", "dot"),
}


def occupancy(rows: pl.DataFrame, arms: Sequence[str]) -> go.Figure:
    """Questions in every bucket, stacked, and the retired: means over the runs of an arm, an arm a
    row.

    rows: those of query `bucket_occupancy`, of these arms.
    """
    buckets = rows["bucket"].unique().sort().to_list()
    shades = sample_colorscale(
        "Viridis", [n / max(1, len(buckets) - 1) for n in range(len(buckets))]
    )
    colours = {**dict(zip(buckets, shades, strict=True)), None: faded(MUTED, 0.35)}
    traces = [
        trace
        for row, arm in enumerate(arms)
        for trace in _filled(rows.filter(pl.col("arm") == arm), arm, row, colours)
    ]
    x = {"title": {"text": "training step"}}
    layout = rows_layout(arms, x, {"title": {"text": "questions"}}, ROW, LEGEND)
    return go.Figure({"data": traces, "layout": layout}, _validate=False)


def _filled(
    rows: pl.DataFrame, arm: str, row: int, colours: Mapping[int | None, str]
) -> list[dict[str, Any]]:
    runs = rows.group_by("step").agg(runs=pl.col("run").n_unique())
    steps = runs["step"].sort().to_list()
    before = dict(zip(steps, [0, *steps], strict=False))
    retired = rows.unique(["run", "step"]).with_columns(
        bucket=pl.lit(None, rows.schema["bucket"]),
        questions=pl.col("retired_questions").cast(rows.schema["questions"]),
    )
    means = (
        pl.concat([rows, retired.select(rows.columns)])
        .group_by("step", "bucket")
        .agg(pl.col("questions").sum())
        .join(runs, on="step")
        .with_columns(pl.col("questions") / pl.col("runs"))
        .sort("step")
    )
    traces = []
    for bucket, colour in colours.items():
        mine = means.filter(pl.col("bucket").eq_missing(pl.lit(bucket, rows.schema["bucket"])))
        name = "retired" if bucket is None else f"k = {bucket}"
        behind = [
            {"arms": [arm], "bucket": [bucket], "step_min": before[step] + 1, "step_max": step}
            for step in mine["step"]
        ]
        traces.append(
            {
                "type": "scatter",
                "x": mine["step"].to_list(),
                "y": mine["questions"].to_list(),
                "name": name,
                "legendgroup": name,
                "showlegend": row == 0,
                "mode": "lines+markers",
                "stackgroup": f"row {row}",
                "fillcolor": colour,
                "line": {"width": 0.5, "color": colour},
                "marker": {"size": HIT, "opacity": 0},
                "customdata": None if bucket is None else behind,
                "hovertemplate": f"step %{{x}}: %{{y:.1f}} questions<extra>{name}</extra>",
                "yaxis": row_axis(row),
            }
        )
    return traces


def event_rates(
    rows: pl.DataFrame, steps: pl.DataFrame, arms: Sequence[str], window: int
) -> go.Figure:
    """Events a logged step, by kind, over all runs of an arm, an arm a row.

    rows: of query `buffer_events`, of these arms. steps: arm and step of every logged step of every
    run; a window without an event counts none.
    """
    if rows.is_empty():
        return say_empty(plain_figure("", ""), "nothing happened in these buffers")
    named: set[str] = set()
    traces = [
        trace
        for row, arm in enumerate(arms)
        for trace in _happened(
            rows.filter(pl.col("arm") == arm),
            steps.filter(pl.col("arm") == arm)["step"],
            arm,
            row,
            window,
            named,
        )
    ]
    x = {"title": {"text": "training step"}}
    layout = rows_layout(arms, x, {"title": {"text": "a step"}}, ROW, LEGEND)
    return go.Figure({"data": traces, "layout": layout}, _validate=False)


def _happened(
    rows: pl.DataFrame, steps: pl.Series, arm: str, row: int, window: int, named: set[str]
) -> list[dict[str, Any]]:
    logged = Counter((step - 1) // window * window + 1 for step in steps)
    firsts = sorted(logged)
    last = max(steps, default=0)
    traces = []
    for event, style in EVENTS.items():
        mine = rows.filter(pl.col("event") == event).group_by("first_step")
        counts = dict(mine.agg(pl.col("events").sum()).iter_rows())
        if not counts:
            continue
        only = {"replayed": True} if event == "replayed" else {}
        traces.append(
            {
                "type": "scatter",
                "x": [middle(first, window, last) for first in firsts],
                "y": [counts.get(first, 0) / logged[first] for first in firsts],
                "name": event,
                "legendgroup": event,
                "showlegend": event not in named,
                "mode": "lines+markers",
                "line": {"color": style.colour, "dash": style.dash, "width": 1.8},
                "marker": {"symbol": style.symbol, "size": 6, "color": style.colour},
                "customdata": [
                    {"arms": [arm], **steps_of(first, window), **only} for first in firsts
                ],
                "hovertemplate": f"about step %{{x}}: %{{y:.2f}} a step<extra>{event}</extra>",
                "yaxis": row_axis(row),
            }
        )
        named.add(event)
    return traces
