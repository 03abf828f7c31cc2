"""Curves of an overview: accuracy by what it cost, and how every run trained."""

from typing import Any, get_args

import polars as pl
import streamlit as st

from analysis.curves import TRAINED, Cost, accuracy_by_cost, points_a_run, training_curve
from analysis.drawing import StudyFacts
from analysis.stage_outputs import StageOutputs
from app import data, state
from app.components.figure import show_titled

BY: dict[Cost, str] = {
    "step": "step",
    "tokens": "sampled tokens",
    "time": "training time",
    "questions": "distinct questions",
}
READING = {
    "step": "Bands are each arm's own: two that overlap may still differ, as the arms share "
    "questions and seeds; the difference at the end pairs them.",
    "tokens": "At equal height the line further left sampled fewer tokens: a replayed answer is "
    "not sampled again.",
    "time": "Seconds are those of the machine at hand, and of what else it did; evaluation is "
    "not in them.",
    "questions": "Once every training question has been asked, the number stands still while "
    "training goes on: the line rises straight up there.",
}


def _arms_picker(kind: type[Any], facts: StudyFacts, chosen: tuple[str, ...]) -> tuple[str, ...]:
    """Let some arms be chosen into the field `arms` of `kind`; none means all."""
    known = tuple(arm for arm in chosen if arm in facts.arms)
    st.multiselect(
        "Arms", facts.arms, placeholder="all arms", width=420, **state.control(kind, "arms", known)
    )
    if len(known) < len(chosen):
        st.warning("Arms: this study does not hold all that the address names.")
    return known


def accuracy_curves(
    kind: type[Any],
    facts: StudyFacts,
    outputs: StageOutputs | None,
    by: Cost,
    chosen: tuple[str, ...],
) -> None:
    """Validation accuracy of the chosen arms; the field `by` of `kind` says over what."""
    st.segmented_control(  # beside something else it would not wrap on a phone
        "By",
        get_args(Cost),
        format_func=BY.__getitem__,
        required=True,
        **state.control(kind, "by", by),
    )
    arms = _arms_picker(kind, facts, chosen)
    plot = accuracy_by_cost(
        facts,
        None if outputs else data.answer("gain_over_time", study=facts.name),
        None if outputs and by == "step" else data.answer("validation_budgets", study=facts.name),
        outputs.comparison if outputs else None,
        by,
        arms,
    )
    show_titled(plot, f"overview.curve.{facts.name}.{by}", study=facts.name)
    st.caption(f"{READING[by]} A click on a point opens its validation answers.")


def training_curves(kind: type[Any], facts: StudyFacts, chosen: tuple[str, ...]) -> None:
    """Small curves of every run of the chosen arms, by step."""
    shown = _arms_picker(kind, facts, chosen) or facts.arms
    runs = data.answer("study_runs", study=facts.name).filter(pl.col("arm").is_in(shown))["run"]
    rows = data.answer(
        "curve_steps", study=facts.name, run=runs.to_list(), points=points_a_run(len(runs))
    )
    plots = {column: training_curve(rows, column) for column in TRAINED}
    drawn = {column: plot for column, plot in plots.items() if plot is not None}
    if not drawn:
        st.info("No training step of these arms is in the log.")
        return
    st.caption(
        "By training step; a line a run, in the look of its arm; each point is the mean of a few "
        "steps where there are many. A click on a line opens the trajectories of these steps."
    )
    for left in range(0, len(drawn), 2):
        part = list(drawn.items())[left : left + 2]
        for column, (name, plot) in zip(st.columns(2, gap="medium"), part, strict=False):
            with column:
                show_titled(plot, f"overview.train.{facts.name}.{name}", study=facts.name)
    if absent := [TRAINED[name].lower() for name in TRAINED if name not in drawn]:
        st.caption(f"Not in the log of these arms: {', '.join(absent)}.")
