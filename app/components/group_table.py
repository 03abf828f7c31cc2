"""The group that a trajectory was trained in: every rollout, and two of them side by side."""

from typing import Any

import polars as pl
import streamlit as st

from app import data, state
from app.browser import Browser, open_trajectory
from app.components.answers import right_of
from app.components.row_picker import row_picker
from app.components.trajectory_rows import ANSWER, ROLLOUT, group_rows
from app.links import COMPARE


def show_group(row: dict[str, Any]) -> None:
    """The rows of the group, this one marked; a click opens another."""
    group = data.answer("group", run=row["run"], step=row["step"], group=row["group"])
    k = right_of(row["group_successes"], row["group_size"], " right")
    st.caption(f"Its group: {k}; click to open")
    row_picker(
        group_rows(group),
        group["trajectory"].to_list(),
        row["trajectory"],
        "detail.group",
        open_trajectory,
    )
    with st.container(horizontal=True):
        _show_comparisons(group, row["trajectory"])
        st.button(
            "All of this question in this run", on_click=state.write, args=(_same_question(row),)
        )


def _show_comparisons(group: pl.DataFrame, trajectory: str) -> None:
    others = group.filter(pl.col("trajectory") != trajectory)
    if others.is_empty():
        return
    with st.popover("Compare with …", icon=":material/difference:"):
        words = {"rollout": ROLLOUT, "answer": ANSWER}
        for other in others.select("trajectory", "slot", **words).iter_rows(named=True):
            st.page_link(
                COMPARE,
                label=f"slot {other['slot']}: {other['answer']}, {other['rollout']}",
                query_params={"a": trajectory, "b": other["trajectory"]},
            )


def _same_question(row: dict[str, Any]) -> Browser:
    return state.change(
        Browser(), run=row["run"], question=row["question"], trajectory=row["trajectory"]
    )
