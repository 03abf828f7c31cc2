"""Figures of how often the models are right: final, against on-policy, over training, by level."""

from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import BASE, REFERENCE, arm_order
from analysis.behind import Behind, listed, samples
from analysis.drawing import Frames, StudyFacts, add_arm, by_seed, say_empty, start
from analysis.shown_tests import ShownTest, shown_tests
from analysis.theme import MUTED, look


def curve(
    facts: StudyFacts, spent: pl.DataFrame, comparison: dict[str, Any], x: str, label: str
) -> go.Figure:
    """Validation accuracy with its interval. spent: column x by arm and step, one row a seed.

    The mean of x is over the seeds that the accuracy is over: those that reached the arm's last
    step, see `analysis.comparison.learning_curves`.
    """
    meaning = f"line: mean; band: {facts.interval_over(comparison['level'])}"
    plot = start(facts, meaning, label, "validation accuracy")
    for arm, points in comparison["learning_curves"].items():
        table = pl.DataFrame(
            [(arm, at["step"], at["value"], at["low"], at["high"]) for at in points],
            schema={"arm": pl.String, "step": pl.Int64, "mean": float, "low": float, "high": float},
            orient="row",
        )
        if x != "step" and points:
            mine = spent.filter(pl.col("arm") == arm)
            whole = mine.filter(pl.col("step") == points[-1]["step"])["seed"]
            means = mine.filter(pl.col("seed").is_in(whole.to_list()))
            means = means.group_by("step").agg(pl.col(x).mean())
            table = table.join(means, on="step", maintain_order="left").drop_nulls(x)
        if table.height:
            add_arm(plot, arm, table, x, band="interval", behind=_validation)
    plot.update_yaxes(tickformat=".0%")
    return plot if plot.data else say_empty(plot, "no validation accuracy was measured")


def _validation(row: dict[str, Any]) -> Behind:
    return samples(row["arm"], benchmark="validation", step=row["step"])


def learning_curve(facts: StudyFacts, frames: Frames, comparison: dict[str, Any]) -> go.Figure:
    return curve(facts, frames["gain_over_time"], comparison, "step", "training step")


def learning_curve_tokens(
    facts: StudyFacts, frames: Frames, comparison: dict[str, Any]
) -> go.Figure:
    label = "tokens sampled so far (mean over seeds)"
    return curve(facts, frames["gain_over_time"], comparison, "sampled_tokens", label)


def _add_intervals(
    plot: go.Figure,
    entries: list[tuple[str, dict[str, Any], list[int]]],
    column: int,
    behind: Callable[[str, list[int]], Behind],
) -> None:
    """entries: arm, estimate and its seeds. behind: the rows of an arm and of some seeds."""
    for arm, made, seeds in entries:
        style, shown = look(arm), escape(arm)  # Plotly reads tags in names
        plot.add_scatter(
            x=[made["value"]],
            y=[shown],
            name=shown,
            showlegend=False,
            customdata=listed([behind(arm, [])]),
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
            hovertemplate=f"%{{x:.3f}} [{made['low']:.3f}, {made['high']:.3f}]"
            f"<extra>{shown}</extra>",
            row=1,
            col=column,
        )
        if len(seeds) > 1:
            plot.add_scatter(
                x=made["by_seed"],
                y=[shown] * len(made["by_seed"]),
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 12, "color": style.colour},
                opacity=0.6,
                showlegend=False,
                customdata=listed([behind(arm, [seed]) for seed in seeds]),
                hovertemplate="one seed: %{x:.3f}<extra>" + shown + "</extra>",
                row=1,
                col=column,
            )


def _panels(
    facts: StudyFacts, comparison: dict[str, Any], key: str, label: str, extra: str
) -> go.Figure:
    panels = shown_tests(comparison["domains"]) or [ShownTest(("test_id",))]  # an empty one
    plot = make_subplots(
        1,
        len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.06,
        subplot_titles=[panel.title for panel in panels],
    )
    ticks = "; small ticks: single seeds" if len(facts.seeds) > 1 else ""
    meaning = f"bar: {facts.interval_over(comparison['level'])}{ticks}{extra}"
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), showlegend=False, margin_t=120)
    arms = {entry["arm"]: entry for entry in comparison["arms"]}
    shown = [
        arm for arm in arm_order(list(arms)) if key == "accuracy" or arm not in (BASE, REFERENCE)
    ]
    for column, panel in enumerate(panels, 1):
        entries = [
            (arm, made, _seeds(arms, arm, made, paired=key == "difference"))
            for arm in shown
            if (made := panel.estimate(arms[arm], key))
        ]
        _add_intervals(plot, entries, column, partial(_of_seeds, panel))
        base = panel.estimate(arms[BASE], key) if BASE in arms and key == "accuracy" else None
        if base:
            plot.add_vline(
                base["value"], line_dash="dot", line_color=look(BASE).colour, row=1, col=column
            )
    plot.update_xaxes(title_text=label, tickformat=".0%")
    names = [escape(arm) for arm in shown[::-1]]
    plot.update_yaxes(type="category", categoryorder="array", categoryarray=names)
    plot.update_layout(height=230 + 46 * max(2, len(shown)))
    return plot


def _of_seeds(test: ShownTest, arm: str, seeds: list[int]) -> Behind:
    return test.behind(arm, seeds=seeds)


def _seeds(
    arms: dict[str, dict[str, Any]], arm: str, made: dict[str, Any], paired: bool
) -> list[int]:
    """The seeds that `by_seed` of an estimate is of; none where that cannot be told."""
    seeds = arms[arm]["seeds"]
    if paired:
        seeds = [seed for seed in seeds if seed in arms[REFERENCE]["seeds"]]
    return seeds if len(seeds) == len(made["by_seed"]) else []


def final_accuracy(facts: StudyFacts, _: Frames, comparison: dict[str, Any]) -> go.Figure:
    plot = _panels(facts, comparison, "accuracy", "accuracy of the tested model", "")
    return plot if plot.data else say_empty(plot, "no model was tested")


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
    tests = frames["arm_accuracy"].group_by("level").agg(pl.col("benchmark").unique())
    level = "steps of the question's chain" if facts.task == "chain" else "level of the question"
    plot = start(facts, facts.seed_band, level, "accuracy of the tested model")
    for arm in [BASE, *facts.arms]:
        table = by_seed(rows.filter(pl.col("arm") == arm), "level", "accuracy")
        if table.height:
            add_arm(plot, arm, table, "level", behind=partial(_of_level, tests, arm))
    if not plot.data:
        tested = frames["arm_accuracy"].height > 0
        return say_empty(plot, "the questions have no levels" if tested else "no model was tested")
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


def _of_level(tests: pl.DataFrame, arm: str, row: dict[str, Any]) -> Behind:
    """The samples of a level, in the test that asks it; in all where several do."""
    names = tests.filter(pl.col("level") == row["level"])["benchmark"][0]
    return samples(arm, benchmark=names[0] if len(names) == 1 else None, level=[row["level"]])
