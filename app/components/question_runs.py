"""One question in the runs of a study: the figures of its arms, its visits, its tests."""

import polars as pl
import streamlit as st

from analysis.question_figures import (
    accuracy_by_checkpoint,
    extent,
    question_timeline,
    rollouts_by_slot,
    visit_rows,
)
from app.components.figure import show_figure
from app.components.question_tables import visit_rows as visit_table
from app.links import open_rows

HOW_TO_READ = (
    "Top: fresh rollouts right at each visit, a line a seed; a filled diamond: a stored trajectory "
    "was replayed then. Middle: every rollout, fresh or replayed. Bottom: the bucket that the "
    "question lies in. Click a dot to read the rollout, anything else for the rows of that visit."
)


def show_arms(
    study: str,
    visits: pl.DataFrame,
    rollouts: pl.DataFrame,
    events: pl.DataFrame,
    last: int | None,
    marked: str | None,
) -> None:
    """A figure an arm, two a row; on one axis where there is only one step."""
    room = extent(visits, rollouts, last)
    if room.last <= 1:
        st.caption(
            "These runs have one step only, so nothing can change over time: each mark is a "
            "rollout. Click one to read it."
        )
        show_figure(rollouts_by_slot(rollouts, marked), "question.slots", study=study)
        return
    st.caption(HOW_TO_READ)
    if events.is_empty():
        st.caption("No bucket is drawn: these runs logged no move of the question in a buffer.")
    arms = visits["arm"].unique(maintain_order=True).to_list()
    for left in range(0, len(arms), 2):
        for column, arm in zip(st.columns(2), arms[left : left + 2], strict=False):
            of_arm = pl.col("arm") == arm
            with column:
                plot = question_timeline(
                    arm,
                    visits.filter(of_arm),
                    rollouts.filter(of_arm),
                    events.filter(of_arm),
                    room,
                    marked,
                )
                show_figure(plot, f"question.arm.{arm}", f"The question in arm {arm}", study=study)


def show_visits(study: str, visits: pl.DataFrame, events: pl.DataFrame) -> None:
    """Every visit as a row; a click opens its rollouts."""
    st.subheader("Every visit", anchor=False)
    st.caption("A row is a group of rollouts. Click one to read them.")
    picked = st.dataframe(
        visit_table(visits, events),
        key="question.visits",
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        placeholder="",
        height=300,
    )
    for row in picked["selection"]["rows"]:
        open_rows(study=study, **visit_rows(visits.row(row, named=True)))


def show_tests(study: str, evaluations: pl.DataFrame) -> None:
    """How often the question was answered right where a benchmark asks it."""
    for (benchmark,), its in evaluations.group_by("benchmark", maintain_order=True):
        st.subheader("As a benchmark's question", anchor=False)
        st.text(f"Benchmark: {benchmark}")
        if its["step"].n_unique() > 1:
            show_figure(accuracy_by_checkpoint(its), f"question.tests.{benchmark}", study=study)
        st.dataframe(
            its.select(
                "arm",
                "step",
                "runs",
                pl.format("{} of {}", "right", "samples").alias("samples right"),
                (100 * pl.col("accuracy")).round(1).alias("%"),
            ),
            hide_index=True,
        )
