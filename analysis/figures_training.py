"""Figures of what happens in training: signal, flaws, entropy, difficulty, the buffer."""

from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.drawing import Frames, StudyFacts, add_arm, by_seed, say_empty, start
from analysis.theme import FLAWED, MUTED, VALID, look


def _windows(rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Means of each seed over windows of 10 steps, so that lines can be read."""
    return (
        rows.drop_nulls(column)
        .with_columns(window_start=(pl.col("step") - 1) // 10 * 10 + 1)
        .group_by("arm", "seed", "window_start")
        .agg(pl.col(column).mean())
    )


def _over_windows(
    facts: StudyFacts, rows: pl.DataFrame, column: str, y: str, empty: str
) -> go.Figure:
    plot = start(facts, facts.seed_band, "training step (start of a window of 10)", y)
    for arm in facts.arms:
        table = by_seed(rows.filter(pl.col("arm") == arm), "window_start", column)
        if table.height:
            add_arm(plot, arm, table, "window_start", markers=table.height < 20)
    plot.update_yaxes(tickformat=".0%", rangemode="tozero")
    return plot if plot.data else say_empty(plot, empty)


def signal_share(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    rows = _windows(frames["buffer_dynamics"], "signal_share")
    label = "groups with right and wrong answers"
    return _over_windows(facts, rows, "signal_share", label, "no training step was logged")


def snowball(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    return _over_windows(
        facts,
        frames["snowball"],
        "flawed_share",
        "right fresh answers with a flawed chain",
        "no right answer whose chain could be checked",
    )


def entropy_by_validity(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    rows = frames["entropy_by_validity"]
    meaning = (
        "right fresh answers, all seeds and steps pooled; bar: standard deviation, not an interval"
    )
    arms = [arm for arm in facts.arms if arm in set(rows["arm"])]
    if not arms:
        return say_empty(start(facts, meaning), "no right answer whose chain could be checked")
    columns = min(2, len(arms))
    plot = make_subplots(
        -(-len(arms) // columns),
        columns,
        shared_yaxes=True,
        shared_xaxes=True,
        subplot_titles=arms,
        horizontal_spacing=0.05,
        vertical_spacing=0.12,
    )
    for place, arm in enumerate(arms):
        for valid, name, colour, symbol, shift in (
            (True, "valid chain", VALID, "circle", -0.08),
            (False, "flawed chain", FLAWED, "diamond", 0.08),
        ):
            table = rows.filter((pl.col("arm") == arm) & (pl.col("chain_valid") == valid)).sort(
                "bucket"
            )
            plot.add_scatter(
                x=[bucket + shift for bucket in table["bucket"]],
                y=table["mean_entropy"].to_list(),
                name=name,
                legendgroup=name,
                showlegend=place == 0,
                mode="markers+lines",
                line={"color": colour, "width": 1.5},
                marker={"color": colour, "symbol": symbol, "size": 8},
                error_y={
                    "type": "data",
                    "array": table["sd_entropy"].fill_null(0).to_list(),
                    "width": 3,
                    "thickness": 1,
                },
                customdata=table.select("trajectories", "mean_length").rows(),
                hovertemplate="entropy %{y:.3f}<br>%{customdata[0]} answers, mean length "
                "%{customdata[1]:.1f} tokens<extra>" + name + "</extra>",
                row=place // columns + 1,
                col=place % columns + 1,
            )
    bottom = -(-len(arms) // columns)
    plot.update_xaxes(dtick=1)
    plot.update_xaxes(title_text="k, right answers in the group", row=bottom)
    plot.update_yaxes(title_text="mean token entropy (nat)", rangemode="tozero", col=1)
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning),
        height=250 + 230 * bottom,
        margin_t=120,
        legend_y=-0.28 / bottom,
    )
    return plot


def difficulty_vs_gain(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    rows = frames["difficulty_vs_gain"].filter(pl.col("next_visits") > 0)
    meaning = "mean over all visits of all seeds, without interval; hover for the number of visits"
    if rows.is_empty():
        return say_empty(start(facts, meaning), "no question was visited twice")
    plot = make_subplots(
        1,
        2,
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=["fresh visits", "visits drawn from the replay buffer"],
    )
    for column, experiential in enumerate((False, True), 1):
        for arm in facts.arms:
            table = rows.filter((pl.col("arm") == arm) & (pl.col("experiential") == experiential))
            style = look(arm)
            plot.add_scatter(
                x=table["bucket"].to_list(),
                y=table["change_next"].to_list(),
                name=arm,
                legendgroup=arm,
                showlegend=column == 1,
                mode="lines+markers",
                line={"color": style.colour, "dash": style.dash},
                marker={"symbol": style.symbol, "size": 8, "color": style.colour},
                customdata=table.select("next_visits", "success_share", "signal_share").rows(),
                hovertemplate="%{y:+.3f} after %{customdata[0]} visits<br>right at the visit "
                "%{customdata[1]:.0%}, with signal %{customdata[2]:.0%}<extra>" + arm + "</extra>",
                row=1,
                col=column,
            )
    plot.add_hline(0, line_color=MUTED, line_width=1)
    plot.update_xaxes(title_text="bucket: right answers k before the visit", dtick=1)
    plot.update_yaxes(tickformat="+.0%")
    plot.update_yaxes(title_text="change of the share right, to the next visit", col=1)
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), margin_t=120)
    return plot


def buffer_dynamics(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    rows = frames["buffer_dynamics"]
    plot = start(
        facts,
        "mean over seeds; solid: in the buffer, dotted: retired",
        "training step",
        "share of the training questions",
    )
    for arm in facts.arms:
        mine = rows.filter((pl.col("arm") == arm) & (pl.col("train_questions") > 0))
        if mine["buffer_questions"].fill_null(0).sum() == 0:
            continue  # an arm without a buffer
        for column, dash, name in (
            ("buffer_questions", "solid", f"{arm}: buffer"),
            ("retired_questions", "dot", f"{arm}: retired"),
        ):
            table = by_seed(
                mine.with_columns(pl.col(column) / pl.col("train_questions")), "step", column
            )
            plot.add_scatter(
                x=table["step"].to_list(),
                y=table["mean"].to_list(),
                name=name,
                mode="lines",
                line={"color": look(arm).colour, "dash": dash, "width": 2.2},
                hovertemplate="%{y:.0%}<extra>" + name + "</extra>",
            )
    plot.update_yaxes(tickformat=".0%", rangemode="tozero")
    return plot if plot.data else say_empty(plot, "no arm of this study has a buffer")
