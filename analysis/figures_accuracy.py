"""Figures of how often the models are right: final, against on-policy, over training, by level."""

from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import BASE, REFERENCE, arm_order
from analysis.drawing import Frames, StudyFacts, add_arm, by_seed, say_empty, start
from analysis.theme import MUTED, look

TEST_NAMES = {"test_id": "in distribution (test_id)", "test_ood": "out of distribution (test_ood)"}


def _curve(
    facts: StudyFacts, frames: Frames, comparison: dict[str, Any], x: str, label: str
) -> go.Figure:
    meaning = f"line: mean; band: {facts.interval_over(comparison['level'])}"
    plot = start(facts, meaning, label, "validation accuracy")
    tokens = (
        frames["gain_over_time"].group_by("arm", "step").agg(tokens=pl.col("sampled_tokens").mean())
    )
    for arm, points in comparison["learning_curves"].items():
        table = pl.DataFrame(
            [(arm, at["step"], at["value"], at["low"], at["high"]) for at in points],
            schema={"arm": pl.String, "step": pl.Int64, "mean": float, "low": float, "high": float},
            orient="row",
        ).join(tokens, on=("arm", "step"), maintain_order="left")
        if table.height:
            add_arm(plot, arm, table, x, band="interval")
    plot.update_yaxes(tickformat=".0%")
    return plot if plot.data else say_empty(plot, "no validation accuracy was measured")


def learning_curve(facts: StudyFacts, frames: Frames, comparison: dict[str, Any]) -> go.Figure:
    return _curve(facts, frames, comparison, "step", "training step")


def learning_curve_tokens(
    facts: StudyFacts, frames: Frames, comparison: dict[str, Any]
) -> go.Figure:
    return _curve(facts, frames, comparison, "tokens", "tokens sampled so far (mean over seeds)")


def _add_intervals(
    plot: go.Figure, entries: list[tuple[str, dict[str, Any]]], column: int, legend: bool
) -> None:
    for arm, made in entries:
        style = look(arm)
        plot.add_scatter(
            x=[made["value"]],
            y=[arm],
            name=arm,
            legendgroup=arm,
            showlegend=legend,
            mode="markers",
            marker={"symbol": style.symbol, "size": 11, "color": style.colour},
            error_x={
                "type": "data",
                "symmetric": False,
                "thickness": 2,
                "width": 6,
                "array": [made["high"] - made["value"]],
                "arrayminus": [made["value"] - made["low"]],
            },
            hovertemplate=f"%{{x:.3f}} [{made['low']:.3f}, {made['high']:.3f}]<extra>{arm}</extra>",
            row=1,
            col=column,
        )
        if len(made["by_seed"]) > 1:
            plot.add_scatter(
                x=made["by_seed"],
                y=[arm] * len(made["by_seed"]),
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 12, "color": style.colour},
                opacity=0.6,
                showlegend=False,
                legendgroup=arm,
                hovertemplate="one seed: %{x:.3f}<extra>" + arm + "</extra>",
                row=1,
                col=column,
            )


def _panels(
    facts: StudyFacts, comparison: dict[str, Any], key: str, label: str, extra: str
) -> go.Figure:
    benchmarks = comparison["benchmarks"] or ["test_id"]
    plot = make_subplots(
        1,
        len(benchmarks),
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=[TEST_NAMES.get(name, name) for name in benchmarks],
    )
    ticks = "; small ticks: single seeds" if len(facts.seeds) > 1 else ""
    meaning = f"bar: {facts.interval_over(comparison['level'])}{ticks}{extra}"
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), showlegend=False, margin_t=120)
    arms = {entry["arm"]: entry for entry in comparison["arms"]}
    shown = [
        arm for arm in arm_order(list(arms)) if key == "accuracy" or arm not in (BASE, REFERENCE)
    ]
    for column, benchmark in enumerate(benchmarks, 1):
        entries = [(arm, arms[arm][key].get(benchmark)) for arm in shown]
        _add_intervals(plot, [(arm, made) for arm, made in entries if made], column, False)
        base = arms.get(BASE, {}).get("accuracy", {}).get(benchmark) if key == "accuracy" else None
        if base:
            plot.add_vline(
                base["value"], line_dash="dot", line_color=look(BASE).colour, row=1, col=column
            )
    plot.update_xaxes(title_text=label, tickformat=".0%")
    plot.update_yaxes(type="category", categoryorder="array", categoryarray=shown[::-1])
    plot.update_layout(height=230 + 46 * max(2, len(shown)))
    return plot


def final_accuracy(facts: StudyFacts, _: Frames, comparison: dict[str, Any]) -> go.Figure:
    plot = _panels(facts, comparison, "accuracy", "accuracy of the final model", "")
    return plot if plot.data else say_empty(plot, "no final model was tested")


def difference_to_reference(facts: StudyFacts, _: Frames, comparison: dict[str, Any]) -> go.Figure:
    extra = "; paired; not adjusted for several comparisons"
    plot = _panels(facts, comparison, "difference", f"accuracy minus that of {REFERENCE}", extra)
    if not plot.data:
        return say_empty(plot, f"no arm beside {REFERENCE}")
    plot.add_vline(0, line_color=MUTED, line_width=1.5)
    plot.update_xaxes(tickformat="+.0%")
    return plot


def accuracy_by_level(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    rows = (
        frames["arm_accuracy"]
        .filter((pl.col("samples") > 0) & pl.col("level").is_not_null())
        .group_by("arm", "seed", "level")
        .agg((pl.col("correct") / pl.col("samples")).mean().alias("accuracy"))
    )
    plot = start(
        facts, facts.seed_band, "steps of the question's chain", "accuracy of the final model"
    )
    for arm in [BASE, *facts.arms]:
        table = by_seed(rows.filter(pl.col("arm") == arm), "level", "accuracy")
        if table.height:
            add_arm(plot, arm, table, "level")
    if not plot.data:
        return say_empty(plot, "no final model was tested")
    runs = frames["study_runs"]
    for column, text in (("pretrained", "pretraining ends"), ("max_level", "training ends")):
        if len(bound := runs[column].drop_nulls()):
            plot.add_vline(
                bound[0] + 0.5,
                line_dash="dot",
                line_color=MUTED,
                annotation_text=text,
                annotation_position="top right",
                annotation_font_size=11,
                annotation_font_color=MUTED,
            )
    plot.update_xaxes(dtick=1)
    plot.update_yaxes(tickformat=".0%", rangemode="tozero")
    return plot
