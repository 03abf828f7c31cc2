"""Curves of runs that are being trained: reward, entropy and response length by step."""

import plotly.graph_objects as go
import polars as pl

from analysis.alarms import smoothed
from analysis.live import PlannedRun
from analysis.theme import TEMPLATE, look

CURVES = {"reward": "reward", "entropy": "entropy (nat a token)", "length": "length (tokens)"}
HEIGHT = 330  # px
MARGIN = {"l": 48, "r": 16, "t": 44, "b": 88}


def live_curves(runs: list[tuple[PlannedRun, pl.DataFrame]]) -> dict[str, go.Figure]:
    """A figure for each of CURVES, from the rows of table `steps` of each run.

    A line a run, in the look of its arm, smoothed as for the alarms. Zoom and hidden arms stay as
    they are when the figure is drawn anew.
    """
    return {column: _curve(column, title, runs) for column, title in CURVES.items()}


def _curve(column: str, title: str, runs: list[tuple[PlannedRun, pl.DataFrame]]) -> go.Figure:
    plot = go.Figure()
    seen: set[str] = set()
    for run, steps in runs:
        line = steps.select("step", smoothed(column)).drop_nulls()
        if line.is_empty():
            continue
        plot.add_scatter(
            x=line["step"].to_list(),
            y=line[column].to_list(),
            mode="lines" if line.height > 1 else "markers",
            name=run.arm,
            legendgroup=run.arm,
            showlegend=run.arm not in seen,
            line={"color": look(run.arm).colour, "dash": look(run.arm).dash, "width": 1.8},
            hovertemplate="step %{x}: %{y:.3f}<extra>" + run.run + "</extra>",
        )
        seen.add(run.arm)
    return plot.update_layout(
        template=TEMPLATE,
        title_text=f"{title[0].upper()}{title[1:]}",
        title_font_size=14,
        yaxis_rangemode="tozero",
        height=HEIGHT,
        margin=MARGIN,
        legend_y=-0.14,
        uirevision="kept",
    )
