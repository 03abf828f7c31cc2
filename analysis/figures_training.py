"""The figure of what training has to learn from."""

from functools import partial
from typing import Any

import plotly.graph_objects as go
import polars as pl

from analysis.behind import Behind, rollouts, window
from analysis.drawing import Frames, StudyFacts, add_arm, by_seed, say_empty, start


def signal_share(facts: StudyFacts, frames: Frames, _: dict[str, Any]) -> go.Figure:
    """Means of each seed over windows of 10 steps, so that lines can be read."""
    rows = (
        frames["buffer_dynamics"]
        .drop_nulls("signal_share")
        .with_columns(window_start=(pl.col("step") - 1) // 10 * 10 + 1)
        .group_by("arm", "seed", "window_start")
        .agg(pl.col("signal_share").mean())
    )
    x, y = "training step (start of a window of 10)", "groups with right and wrong answers"
    plot = start(facts, facts.seed_band, x, y)
    for arm in facts.arms:
        table = by_seed(rows.filter(pl.col("arm") == arm), "window_start", "signal_share")
        if table.height:
            few = table.height < 20
            add_arm(plot, arm, table, "window_start", markers=few, behind=partial(_trained, arm))
    plot.update_yaxes(tickformat=".0%", rangemode="tozero")
    return plot if plot.data else say_empty(plot, "no training step was logged")


def _trained(arm: str, row: dict[str, Any]) -> Behind:
    return rollouts(arm, steps=window(row["window_start"]))
