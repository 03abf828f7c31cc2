"""What does accuracy cost: questions, tokens, time? (claim C20)"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE
from analysis.comparison import CURVE_REPLICATES, AccuracyTable, Estimate, estimate
from analysis.drawing import Frames, StudyFacts, add_arm, say_empty, start
from analysis.observations.clustered import clustered_ratios, drawn_over, first_arms, further
from analysis.observations.observation import Observation
from analysis.statistics import Floats

BUDGETS = {
    "distinct_questions": "distinct fresh questions",
    "fresh_questions": "fresh questions drawn",
    "sampled_tokens": "tokens sampled",
    "seconds": "training seconds",
}


@dataclass(frozen=True)
class Curve:
    """One run's validation: spent [T] of each budget, accuracy [T, Q], NaN where ungraded."""

    spent: dict[str, Floats]
    accuracy: Floats
    questions: list[str]

    def reached(self, budget: str) -> float:
        """The most that was spent; NaN when it was not logged."""
        return float(self.spent[budget][-1])

    def at(self, budget: str, spent: float) -> Floats:
        """Accuracy [Q] when so much was spent, linear between the validations around it.

        NaN before the first. Of validations that had spent the same, the last one counts.
        """
        places = self.spent[budget]
        if spent < places[0]:
            return np.full(len(self.questions), np.nan)
        after = min(int(np.searchsorted(places, spent, side="right")), len(places) - 1)
        before = max(after - 1, 0)
        room = places[after] - places[before]
        part = min(1.0, (spent - places[before]) / room) if room else 1.0
        earlier, later = self.accuracy[before], self.accuracy[after]
        return later if part == 1 else earlier + part * (later - earlier)


def _joined(frames: Frames) -> pl.DataFrame:
    """Accuracy by run, step and question, with what had been spent; seeds that went to the end."""
    accuracy = (
        frames["validation_accuracy"]
        .filter(pl.col("samples") > 0)
        .with_columns(accuracy=pl.col("correct") / pl.col("samples"), one=1.0)
    )
    spent = frames["validation_budgets"].drop("run")
    last = pl.col("step").max()
    return accuracy.join(
        spent, on=["study", "arm", "seed", "step"], nulls_equal=True, maintain_order="left"
    ).filter(last.over("arm", "seed") == last.over("arm"))


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Validation accuracy against each budget."""
    meaning = f"line: mean; band: {facts.interval_over(0.95)}"
    rows = _joined(frames)
    made = clustered_ratios(rows, ("arm", "step"), "accuracy", "one", CURVE_REPLICATES)
    if not made:
        return say_empty(start(facts, meaning), "no validation accuracy was measured")
    bounds = [each.interval() for each in made.values()]
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
                add_arm(panel, arm, mine, budget, band="interval")
        for trace in panel.data:
            plot.add_trace(trace.update(showlegend=bool(trace.name) and place == 0), **at)
        plot.update_xaxes(title_text=label, rangemode="tozero", **at)
    plot.update_yaxes(tickformat=".0%")
    plot.update_yaxes(title_text="validation accuracy", col=1)
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), height=680, legend_y=-0.12)
    return plot


def _curves(rows: pl.DataFrame) -> dict[str, dict[int | None, Curve]]:
    """The curve of every arm and seed, over the questions that all its validations graded."""
    curves: dict[str, dict[int | None, Curve]] = {}
    for (arm, seed), part in rows.group_by("arm", "seed", maintain_order=True):
        wide = part.pivot(
            "question", index=["step", *BUDGETS], values="accuracy", aggregate_function="mean"
        ).sort("step")
        questions = wide.columns[1 + len(BUDGETS) :]
        spent = {name: wide[name].cast(pl.Float64).to_numpy() for name in BUDGETS}
        curves.setdefault(str(arm), {})[seed] = Curve(
            spent, wide.select(questions).cast(pl.Float64).to_numpy(), questions
        )
    return curves


def at_equal_budget(
    first: dict[int | None, Curve], second: dict[int | None, Curve], budget: str
) -> tuple[float, Estimate] | None:
    """The most of a budget that all common seeds of both arms spent, and first - second there.

    Paired by seed and question. None when there is no common seed or question, or nothing logged.
    """
    seeds = [seed for seed in first if seed in second]
    pairs = [(first[seed], second[seed]) for seed in seeds]
    spent = min((curve.reached(budget) for pair in pairs for curve in pair), default=np.nan)
    if not all(np.isfinite(curve.spent[budget]).all() for pair in pairs for curve in pair):
        return None
    questions = sorted(
        set.intersection(*(set(curve.questions) for pair in pairs for curve in pair))
        if pairs
        else set()
    )
    values = np.full((len(seeds), len(questions)), np.nan)
    for row, pair in enumerate(pairs):
        one, other = (
            curve.at(budget, spent)[[curve.questions.index(name) for name in questions]]
            for curve in pair
        )
        values[row] = one - other
    made = estimate(
        AccuracyTable(values, seeds, questions), least=-1.0, replicates=CURVE_REPLICATES
    )
    return None if made is None else (spent, made)


def lines(frames: Frames) -> list[str]:
    """The difference of every arm to the reference at the largest common budgets."""
    rows = _joined(frames)
    if rows.is_empty():
        return ["Not here: no validation accuracy was measured."]
    curves = _curves(rows)
    if REFERENCE not in curves:
        return [f"Not here: no {REFERENCE} run to compare with at equal budgets."]
    arms = [arm for arm in first_arms(list(curves)) if arm != REFERENCE]
    if not arms:
        return [f"Not here: no arm beside {REFERENCE} to compare at equal budgets."]
    said = [line for arm in arms for line in _against_reference(arm, curves)]
    return said + further(list(curves), "validation_budgets")


def _against_reference(arm: str, curves: dict[str, dict[int | None, Curve]]) -> Iterator[str]:
    parts, over = [], ""
    for budget, label in BUDGETS.items():
        if found := at_equal_budget(curves[arm], curves[REFERENCE], budget):
            spent, made = found
            parts.append(
                f"{100 * made.value:+.1f} points [{100 * made.low:+.1f}, {100 * made.high:+.1f}] "
                f"at {spent:,.{0 if spent >= 100 else 1}f} {label}"
            )
            over = drawn_over(made.seeds, made.questions)
    if parts:
        yield f"{arm} against {REFERENCE}: {'; '.join(parts)} ({over})."
    else:
        yield f"Not here: {arm} and {REFERENCE} share no seed, or no question that both answered."


DATA_EFFICIENCY = Observation(
    name="data_efficiency",
    title="What does accuracy cost: questions, tokens, time?",
    reading=(
        "At equal height the line further left spent less. Once every training question has been "
        "asked, their distinct number stands still while training goes on; questions drawn count "
        "repeats. Seconds are those of the machine at hand, and of what else it did."
    ),
    queries=("validation_accuracy", "validation_budgets"),
    draw=draw,
    lines=lines,
)
