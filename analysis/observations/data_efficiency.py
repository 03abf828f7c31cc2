"""What does accuracy cost: questions, tokens, time? (claim C20)"""

from collections.abc import Iterator
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE
from analysis.behind import Behind, samples
from analysis.budgets import NotComparableError, at_equal_budget, with_budgets
from analysis.comparison import CURVE_REPLICATES
from analysis.drawing import Frames, StudyFacts, add_arm, say_empty, start
from analysis.observations.clustered import clustered_ratios, drawn_over, first_arms, further
from analysis.observations.marks import SHARE, interval_within, points
from analysis.observations.observation import Observation
from analysis.statistics import bootstrap_mean

BUDGETS = {
    "distinct_questions": "distinct fresh questions",
    "fresh_questions": "fresh questions drawn",
    "sampled_tokens": "tokens sampled",
    "seconds": "training seconds",
}


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Validation accuracy against each budget."""
    meaning = f"line: mean; band: {facts.interval_over(0.95)}"
    rows = with_budgets(frames["validation_accuracy"], frames["validation_budgets"])
    rows = rows.with_columns(one=1.0)
    made = clustered_ratios(rows, ("arm", "step"), "accuracy", "one", CURVE_REPLICATES)
    if not made:
        return say_empty(start(facts, meaning), "no validation accuracy was measured")
    bounds = [interval_within(each, SHARE) for each in made.values()]
    table = pl.DataFrame(
        {
            "arm": [arm for arm, _ in made],
            "step": [step for _, step in made],
            "mean": [each.value for each in made.values()],
            "low": [low for low, _ in bounds],
            "high": [high for _, high in bounds],
        }
    )
    spent = rows.group_by("arm", "step").agg(pl.col(*BUDGETS).mean())
    table = table.join(spent, on=["arm", "step"], maintain_order="left").sort("arm", "step")
    plot = make_subplots(2, 2, shared_yaxes=True, horizontal_spacing=0.04, vertical_spacing=0.16)
    for place, (budget, label) in enumerate(BUDGETS.items()):
        at = {"row": place // 2 + 1, "col": place % 2 + 1}
        panel = go.Figure()
        for arm in first_arms(table["arm"].to_list()):
            mine = table.filter((pl.col("arm") == arm) & pl.col(budget).is_not_null())
            if mine.height:
                add_arm(panel, arm, mine, budget, band="interval", behind=_validation)
        for trace in panel.data:
            plot.add_trace(trace.update(showlegend=bool(trace.name) and place == 0), **at)
        plot.update_xaxes(title_text=label, rangemode="tozero", **at)
    plot.update_yaxes(tickformat=".0%")
    plot.update_yaxes(title_text="validation accuracy", col=1)
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), height=680, legend_y=-0.12)
    return plot


def _validation(row: dict[str, Any]) -> Behind:
    return samples(row["arm"], benchmark="validation", step=row["step"])


def lines(frames: Frames) -> list[str]:
    """The difference of every arm to the reference where both have spent as much."""
    rows = with_budgets(frames["validation_accuracy"], frames["validation_budgets"])
    found = rows["arm"].to_list()
    if not found:
        return ["Not here: no validation accuracy was measured."]
    if REFERENCE not in found:
        return [f"Not here: no {REFERENCE} run to compare with at equal budgets."]
    arms = [arm for arm in first_arms(found) if arm != REFERENCE]
    if not arms:
        return [f"Not here: no arm beside {REFERENCE} to compare at equal budgets."]
    said = [line for arm in arms for line in _against_reference(arm, rows)]
    return said + further(found, "validation_budgets")


def _against_reference(arm: str, rows: pl.DataFrame) -> Iterator[str]:
    """One sentence of what can be compared, and one for every reason why something cannot."""
    parts, over = [], ""
    missing: dict[str, list[str]] = {}
    for budget, label in BUDGETS.items():
        try:
            found = at_equal_budget(rows, arm, REFERENCE, budget)
        except NotComparableError as reason:
            missing.setdefault(str(reason), []).append(label)
            continue
        made = bootstrap_mean(found.differences.values)
        parts.append(f"{points(made)} at {_amount(found.spent)} {label}")
        over = drawn_over(made.seeds, made.questions)
    if parts:
        yield f"{arm} minus {REFERENCE}: {'; '.join(parts)} ({over})."
    for why, labels in missing.items():
        yield f"Not here: {arm} and {REFERENCE} at equal {' or '.join(labels)}: {why}."


def _amount(spent: list[float]) -> str:
    """Where the seeds were compared: one number, or the least and the greatest."""
    least, most = (f"{end:,.{0 if end >= 100 else 1}f}" for end in (min(spent), max(spent)))
    return least if least == most else f"{least} to {most}"


DATA_EFFICIENCY = Observation(
    name="data_efficiency",
    title="What does accuracy cost: questions, tokens, time?",
    reading=(
        "At equal height the line further left spent less. Once every training question has been "
        "asked, their distinct number stands still while training goes on: the sentences compare "
        "the first validations after that. Questions drawn count repeats. Each seed is compared "
        "where its lesser arm ends. Seconds are those of the machine at hand, and of what else it "
        "did."
    ),
    queries=("validation_accuracy", "validation_budgets"),
    draw=draw,
    lines=lines,
)
