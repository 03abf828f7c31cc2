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
from app.components.row_opener import rows_that_open
from app.links import open_rows

HOW_TO_READ = (
    "Top: fresh rollouts right at each visit, a line an arm, broken between its seeds; a filled "
    "diamond: a stored trajectory was replayed then. Below, of the one arm: every rollout, fresh "
    "or replayed, and the bucket that the question lies in. Click a dot to read the rollout, "
    "anything else for the rows of that visit."
)


def show_slots(study: str, rollouts: pl.DataFrame, marked: str | None) -> None:
    """The rollouts of runs that have one step only."""
    st.caption(
        "These runs have one step only, so nothing can change over time: each mark is a "
        "rollout. Click one to read it."
    )
    show_figure(rollouts_by_slot(rollouts, marked), "question.slots", study=study)


def show_timeline(
    study: str,
    arm: str,
    visits: pl.DataFrame,
    rollouts: pl.DataFrame,
    events: pl.DataFrame,
    last: int,
    marked: str | None,
) -> None:
    """The visits in all arms over the rollouts and the buckets of one."""
    st.caption(HOW_TO_READ)
    its = events.filter(pl.col("arm") == arm)
    if its.is_empty():
        st.caption("No bucket is drawn: its runs logged no move of the question in a buffer.")
    room = extent(visits, rollouts, last)
    plot = question_timeline(arm, visits, rollouts, its, room, marked)
    show_figure(plot, "question.timeline", "The question over the training", study=study)


def show_visits(study: str, visits: pl.DataFrame, events: pl.DataFrame) -> None:
    """Every visit as a row; a click opens its rollouts."""
    st.subheader("Every visit", anchor=False)
    st.caption("A row is a group of rollouts. Click one to read them.")
    rows_that_open(
        visit_table(visits, events),
        "question.visits",
        lambda row: open_rows(study=study, **visit_rows(visits.row(row, named=True))),
        height=300,
    )


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
