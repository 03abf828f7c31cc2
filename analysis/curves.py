"""Curves that the dashboard draws from the log: accuracy by what it cost, and how runs train."""

from html import escape
from typing import Any, Literal

import plotly.graph_objects as go
import polars as pl

from analysis.arms import arm_order
from analysis.behind import UNSEEN, Behind, rollouts, samples
from analysis.drawing import StudyFacts, add_arm, by_seed, say_empty, start
from analysis.figures import finished
from analysis.figures_accuracy import curve
from analysis.theme import TEMPLATE, look

Cost = Literal["step", "tokens", "time", "questions"]
COSTS: dict[Cost, tuple[str, str]] = {  # name and label of the axis
    "step": ("step", "training step"),
    "tokens": ("sampled_tokens", "tokens sampled so far (mean over seeds)"),
    "time": ("minutes", "training time so far, minutes (mean over seeds)"),
    "questions": ("distinct_questions", "distinct questions asked so far (mean over seeds)"),
}
TRAINED = {
    "reward": "Reward of fresh rollouts",
    "entropy": "Entropy, nat a token",
    "length": "Length, tokens",
    "ratio": "Mean importance ratio of replayed tokens",
    "buffer_questions": "Questions in the replay buffer",
}
MOST_POINTS = 200  # of a run in a small figure
ALL_POINTS = 2400  # of all its runs: each is sent to the browser
SMALL_HEIGHT = 360  # px


def points_a_run(runs: int) -> int:
    """So many points that many runs together stay light, and one never has more than needed."""
    return max(20, min(MOST_POINTS, ALL_POINTS // max(1, runs)))


def accuracy_by_cost(
    facts: StudyFacts,
    accuracy: pl.DataFrame | None,
    budgets: pl.DataFrame | None,
    comparison: dict[str, Any] | None,
    by: Cost,
    arms: tuple[str, ...] = (),
) -> go.Figure:
    """Validation accuracy against what had been spent, a line an arm (all if none is named).

    accuracy: rows of `gain_over_time`, if there is no comparison; budgets: rows of
    `validation_budgets`, but for a comparison by step. Bands are those of `comparison`; before a
    study is analysed they go from the least to the greatest seed.
    """
    column, label = COSTS[by]
    spent = pl.DataFrame()
    if budgets is not None:
        spent = budgets.with_columns(minutes=pl.col("seconds") / 60)
    if comparison is not None:
        curves = comparison["learning_curves"]
        kept = {arm: points for arm, points in curves.items() if not arms or arm in arms}
        plot = curve(facts, spent, comparison | {"learning_curves": kept}, column, label)
    else:
        assert accuracy is not None
        rows = accuracy.drop("sampled_tokens").join(
            spent.drop("study", "run"), on=("arm", "seed", "step"), nulls_equal=True
        )
        plot = _by_seed(facts, rows, column, label, arms)
    return finished(plot, "How does accuracy grow?")


def _by_seed(
    facts: StudyFacts, rows: pl.DataFrame, column: str, label: str, arms: tuple[str, ...]
) -> go.Figure:
    plot = start(facts, facts.seed_band, label, "validation accuracy")
    for arm in arms or facts.arms:
        mine = rows.filter(pl.col("arm") == arm).drop_nulls(column)
        table = by_seed(mine, "step", "accuracy")
        if column != "step":
            costs = mine.group_by("step").agg(pl.col(column).mean())
            table = table.join(costs, on="step", maintain_order="left")
        if table.height:
            table = table.with_columns(arm=pl.lit(arm))
            add_arm(plot, arm, table, column, behind=_validation)
    plot.update_yaxes(tickformat=".0%")
    return plot if plot.data else say_empty(plot, "no validation accuracy was measured")


def _validation(row: dict[str, Any]) -> Behind:
    return samples(row["arm"], benchmark="validation", step=row["step"])


def training_curve(rows: pl.DataFrame, column: str) -> go.Figure | None:
    """A column of query `curve_steps` by step, a line a run in the look of its arm.

    None where no run has the column.
    """
    plot = go.Figure()
    seen: set[str] = set()
    known = rows.drop_nulls(column)
    order = {arm: place for place, arm in enumerate(arm_order(known["arm"].to_list()))}
    known = known.sort(
        pl.col("arm").replace_strict(order, return_dtype=pl.Int64), "run", "first_step"
    )
    for (run,), part in known.group_by("run", maintain_order=True):
        arm = part["arm"][0]
        style, shown = look(arm), escape(arm)
        plot.add_scatter(
            x=part["last_step"].to_list(),
            y=part[column].to_list(),
            name=shown,
            legendgroup=shown,
            showlegend=arm not in seen,
            mode="lines+markers",
            line={"color": style.colour, "dash": style.dash, "width": 1.5},
            marker=UNSEEN,
            customdata=[
                rollouts(run=run, steps=steps)
                for steps in part.select("first_step", "last_step").iter_rows()
            ],
            hovertemplate="step %{x}: %{y:.3f}<extra>" + escape(str(run)) + "</extra>",
        )
        seen.add(arm)
    if not plot.data:
        return None
    return plot.update_layout(
        template=TEMPLATE,
        title_text=TRAINED[column],
        yaxis_rangemode="tozero",
        height=SMALL_HEIGHT,
        margin={"l": 48, "r": 16, "t": 96, "b": 72},
        legend_y=-0.16,
    )
