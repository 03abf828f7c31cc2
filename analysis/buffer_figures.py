"""Figures of the experience buffer. Each point's `customdata` names the rows behind it, as fields
of `analysis.browse.Filters`."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.draw_rule import ArmDraws
from analysis.drawing import say_empty
from analysis.observations.clustered import first_arms
from analysis.theme import MUTED, TEMPLATE, faded, look

HEIGHT = 340
MARGIN = {"l": 60, "r": 16, "t": 24, "b": 60}
MEASURES = {
    "gini": "Gini coefficient",
    "top_1": "share of the top 1 % of the questions",
    "top_10": "share of the top 10 %",
}


def plain_figure(x: str, y: str, **layout: Any) -> go.Figure:
    """An empty figure with the axes' titles and the common look."""
    plot = go.Figure()
    plot.update_xaxes(title_text=x)
    plot.update_yaxes(title_text=y)
    return plot.update_layout(
        template=TEMPLATE, height=HEIGHT, margin=MARGIN, legend_y=-0.24, **layout
    )


def arms_with_buffer(last: pl.DataFrame) -> list[str]:
    """The arms whose buffer held or retired a question by the last step, in the common order.

    last: rows of query `bucket_occupancy` of the last steps.
    """
    used = pl.col("questions").sum() + pl.col("retired_questions").sum()
    held = last.group_by("arm").agg(used=used).filter(pl.col("used") > 0)
    return first_arms(held["arm"].to_list())


def steps_of(first_step: int, window: int) -> dict[str, int]:
    """The filters of a window of steps."""
    return {"step_min": first_step, "step_max": first_step + window - 1}


def middle(first_step: int, window: int, last_step: int) -> float:
    """The middle of a window of steps, which the end of training may cut."""
    return (first_step + min(first_step + window - 1, last_step)) / 2


def ages(rows: pl.DataFrame, window: int, ends: Mapping[str, int]) -> go.Figure:
    """Median age of what is replayed, with 5 and 95 %; means over runs.

    rows: of query `buffer_ages`. ends: the last step of each arm.
    """
    plot = plain_figure("training step", "age (steps)")
    for arm, mine in _by_arm(rows):
        means = (
            mine.group_by("first_step")
            .agg(pl.col("age_p05", "age_p50", "age_p95").mean())
            .sort("first_step")
        )
        add_line(
            plot,
            arm,
            x=[middle(first, window, ends[arm]) for first in means["first_step"]],
            y=means["age_p50"].to_list(),
            low=means["age_p05"].to_list(),
            high=means["age_p95"].to_list(),
            behind=[
                {"arms": [arm], "replayed": True, **steps_of(first, window)}
                for first in means["first_step"]
            ],
            form=".1f",
        )
    return plot if plot.data else say_empty(plot, "nothing of their own was replayed")


def ratios(rows: pl.DataFrame, width: int, column: str = "ratio") -> go.Figure:
    """Importance ratio (`ratio`: median, 5 and 95 %) or mean weight (`weight`) by age.

    rows: of query `buffer_age_weights`.
    """
    title = "importance ratio" if column == "ratio" else "factor of the advantage"
    plot = plain_figure("age when replayed (steps)", title)
    for arm, mine in _by_arm(rows.filter(pl.col("with_gradient") > 0)):
        middle = "ratio_p50" if column == "ratio" else "weight_mean"
        spread = column == "ratio"
        add_line(
            plot,
            arm,
            x=[least + (width - 1) / 2 for least in mine["least_age"]],
            y=mine[middle].to_list(),
            low=mine["ratio_p05"].to_list() if spread else None,
            high=mine["ratio_p95"].to_list() if spread else None,
            behind=[
                {"arms": [arm], "replayed": True, "age_min": least, "age_max": least + width - 1}
                for least in mine["least_age"]
            ],
            form=".3f",
        )
    if column == "ratio" and plot.data:
        plot.add_hline(1, line_color=MUTED, line_width=1)
    return plot if plot.data else say_empty(plot, "no replayed trajectory had a gradient")


def reuse_counts(
    rows: pl.DataFrame, what: str, times: str, replaying: Collection[str]
) -> go.Figure:
    """How many of `what` were used so often: rows arm, times, mean (over runs).

    replaying: the arms that replay trajectories; a point of another opens fresh ones.
    """
    plot = plain_figure(times, f"{what}, a run")
    plot.update_yaxes(type="log", dtick=1)
    for arm, mine in _by_arm(rows):
        add_line(
            plot,
            arm,
            x=mine["times"].to_list(),
            y=mine["mean"].to_list(),
            behind=[
                {"arms": [arm], "replayed": used > 0 and arm in replaying} for used in mine["times"]
            ],
            form=".1f",
        )
    return plot if plot.data else say_empty(plot, "nothing was stored")


def draws(found: ArmDraws) -> go.Figure:
    """Draws from each bucket and what the rule lets expect; below, the difference of the two, with
    the interval of a faithful run."""
    style, frame = look(found.arm), found.frame
    buckets = frame["bucket"].to_list()
    behind = [
        {"arms": [found.arm], "bucket_drawn": [bucket], "replayed": found.replays}
        for bucket in buckets
    ]
    plot = make_subplots(2, 1, shared_xaxes=True, vertical_spacing=0.06, row_heights=[0.6, 0.4])
    rule = {
        "name": "expected by the rule, 95 %",
        "legendgroup": "rule",
        "mode": "markers",
        "marker": {"symbol": "line-ew-open", "size": 22, "color": MUTED, "line": {"width": 2}},
        "customdata": behind,
        "hovertext": [f"{a:.0f} to {b:.0f}" for a, b in frame.select("low", "high").rows()],
    }
    drawn = {
        "name": "drawn",
        "legendgroup": "drawn",
        "mode": "markers",
        "marker": {"symbol": style.symbol, "size": 10, "color": style.colour},
        "customdata": behind,
    }
    expected = frame["expected"]
    plot.add_scatter(
        x=buckets,
        y=expected.to_list(),
        hovertemplate="expected %{y:.1f}, 95 %: %{hovertext}<extra></extra>",
        row=1,
        col=1,
        **rule,
    )
    plot.add_scatter(
        x=buckets,
        y=frame["drawn"].to_list(),
        hovertemplate="drawn %{y}<extra></extra>",
        row=1,
        col=1,
        **drawn,
    )
    plot.add_scatter(
        x=buckets,
        y=[0.0] * len(buckets),
        error_y={
            "type": "data",
            "symmetric": False,
            "array": (frame["high"] - expected).to_list(),
            "arrayminus": (expected - frame["low"]).to_list(),
            "thickness": 14,
            "width": 0,
            "color": faded(MUTED, 0.5),
        },
        hovertemplate="expected, 95 %: %{hovertext}<extra></extra>",
        showlegend=False,
        row=2,
        col=1,
        **rule,
    )
    plot.add_scatter(
        x=buckets,
        y=(frame["drawn"] - expected).to_list(),
        hovertemplate="%{y:+.1f}<extra></extra>",
        showlegend=False,
        row=2,
        col=1,
        **drawn,
    )
    plot.update_xaxes(dtick=1)
    plot.update_xaxes(title_text="bucket: k right", row=2, col=1)
    plot.update_yaxes(title_text="drawn", rangemode="tozero", row=1, col=1)
    plot.update_yaxes(title_text="less expected", row=2, col=1)
    return plot.update_layout(template=TEMPLATE, height=430, margin=MARGIN, legend_y=-0.18)


def concentration(
    rows: pl.DataFrame,
    measure: str,
    window: int,
    ends: Mapping[str, int],
    replaying: Collection[str],
) -> go.Figure:
    """A measure of MEASURES over training, of all uses so far; band: least to greatest run.

    ends: the last step of each arm. replaying: as for `reuse_counts`.
    """
    plot = plain_figure("training step", MEASURES[measure])
    for arm, mine in _by_arm(rows):
        means = (
            mine.group_by("first_step")
            .agg(
                mean=pl.col(measure).mean(),
                low=pl.col(measure).min(),
                high=pl.col(measure).max(),
            )
            .sort("first_step")
        )
        add_line(
            plot,
            arm,
            x=[min(first + window - 1, ends[arm]) for first in means["first_step"]],
            y=means["mean"].to_list(),
            low=means["low"].to_list(),
            high=means["high"].to_list(),
            behind=[
                {"arms": [arm], "replayed": arm in replaying, **steps_of(first, window)}
                for first in means["first_step"]
            ],
            form=".3f",
        )
    plot.update_yaxes(rangemode="tozero")
    return plot if plot.data else say_empty(plot, "no question was used")


def lorenz_curves(rows: pl.DataFrame, replaying: Collection[str]) -> go.Figure:
    """Share of all uses on the least used part of the questions; the diagonal: all alike.

    replaying: as for `reuse_counts`.
    """
    plot = plain_figure("questions, the least used first", "of all uses")
    for arm, mine in _by_arm(rows):
        add_line(
            plot,
            arm,
            x=mine["questions"].to_list(),
            y=mine["share"].to_list(),
            behind=[{"arms": [arm], "replayed": arm in replaying}] * mine.height,
            form=".1%",
            size=3,
        )
    if not plot.data:
        return say_empty(plot, "no question was used")
    plot.add_shape(type="line", x0=0, y0=0, x1=1, y1=1, line={"color": MUTED, "dash": "dot"})
    plot.update_xaxes(tickformat=".0%", range=[0, 1], dtick=0.2)
    return plot.update_yaxes(tickformat=".0%", range=[0, 1.02])


def add_line(
    plot: go.Figure,
    arm: str,
    x: Sequence[float],
    y: Sequence[float | None],
    behind: Sequence[Mapping[str, Any]],
    low: Sequence[float | None] | None = None,
    high: Sequence[float | None] | None = None,
    form: str = ".3f",
    size: int = 6,
) -> None:
    """The line of an arm, with a band from low to high if there is one."""
    style, name = look(arm), escape(arm)
    ends = [""] * len(x)
    if low is not None and high is not None:
        plot.add_scatter(
            x=[*x, *reversed(x)],
            y=[*high, *reversed(low)],
            mode="lines",
            fill="toself",
            fillcolor=faded(style.colour),
            line_width=0,
            hoverinfo="skip",
            showlegend=False,
            legendgroup=name,
        )
        ends = [f" ({a:{form}} to {b:{form}})" for a, b in zip(low, high, strict=True)]
    plot.add_scatter(
        x=list(x),
        y=list(y),
        name=name,
        legendgroup=name,
        mode="lines+markers",
        line={"color": style.colour, "dash": style.dash, "width": 2},
        marker={"symbol": style.symbol, "size": size, "color": style.colour},
        customdata=list(behind),
        hovertext=ends,
        hovertemplate=f"%{{x}}: %{{y:{form}}}%{{hovertext}}<extra>{name}</extra>",
    )


def _by_arm(rows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    return [(str(arm), mine) for (arm,), mine in rows.group_by("arm", maintain_order=True)]
