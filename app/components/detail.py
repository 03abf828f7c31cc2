"""One trajectory: its text or coloured tokens, its question, its group, where it was replayed."""

from typing import Any

import polars as pl
import streamlit as st

from app import data
from app.browser import Browser, open_trajectory
from app.components.answers import right_of
from app.components.group_table import show_group
from app.components.notes_editor import show_notes
from app.components.question_block import show_question
from app.components.response_view import show_response
from app.components.row_picker import row_picker
from app.components.trajectory_rows import lineage_rows
from app.links import LINEAGE, QUESTION


def show_detail(browser: Browser) -> None:
    """The trajectory that the address names, or a word that the catalog does not hold it."""
    assert browser.trajectory is not None
    row = data.trajectory(browser.trajectory)
    if row is None:
        st.warning("This catalog does not hold the trajectory that the address names:")
        st.code(browser.trajectory, language=None)
        return
    _headline(row)
    text, context = st.columns([3, 2], gap="medium")
    with text:
        show_question(row)
        show_response(row, browser)
    with context:
        show_notes(row["trajectory"], browser)
        show_group(row)
        _lineage(row)
        _all_columns(row)


def _headline(row: dict[str, Any]) -> None:
    answer = {True: ":green-badge[✓ right]", False: ":red-badge[✗ wrong]"}.get(
        row["correct"], ":gray-badge[? ungraded]"
    )
    chain = {True: ":green-badge[chain valid]", False: ":orange-badge[chain flawed]"}.get(
        row["chain_valid"], ""
    )
    rollout = ":violet-badge[↻ replayed]" if row["replayed"] else ":blue-badge[fresh]"
    k = right_of(row["group_successes"], row["group_size"], " right")
    facts = f"step {row['step']} · {k}"
    if row["mean_entropy"] is not None:
        facts += f" · entropy {row['mean_entropy']:.4f} nat/token"
    if row["length"] is not None:
        facts += f" · {row['length']} tokens"
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    left.markdown(f"{answer} {chain} {rollout} {facts}")
    right.code(row["trajectory"], language=None)


def _lineage(row: dict[str, Any]) -> None:
    with st.container(horizontal=True):
        st.page_link(
            LINEAGE,
            label="Its lineage",
            icon=":material/account_tree:",
            query_params={"trajectory": row["trajectory"]},
        )
        if row["question"] is not None:
            st.page_link(
                QUESTION,
                label="Its question over time",
                icon=":material/timeline:",
                query_params={"study": row["study"], "question": row["question"]},
            )
    lineage = data.answer("lineage", trajectory=row["trajectory"])
    replays = lineage.filter(pl.col("replayed"))
    if replays.is_empty():
        st.caption("Lineage: never replayed")
        return
    st.caption(
        f"Lineage: first sampled at step {row['birth_step']}, replayed "
        f"{replays.height} time{'' if replays.height == 1 else 's'}; click to open"
    )
    row_picker(
        lineage_rows(lineage),
        lineage["trajectory"].to_list(),
        row["trajectory"],
        "detail.lineage",
        open_trajectory,
    )


def _all_columns(row: dict[str, Any]) -> None:
    """Forty rows that few want: made only when asked for."""
    if not st.toggle("All columns with their meaning", key="detail.columns"):
        return
    columns = data.schema().filter(
        (pl.col("table") == "trajectories") & (pl.col("column") != "response")
    )
    st.dataframe(
        columns.select(
            "column",
            pl.Series("value", [_text(row[name]) for name in columns["column"]]),
            "meaning",
        ),
        hide_index=True,
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
