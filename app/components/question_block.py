"""The question of a trajectory or of a test sample, with its gold answer and the one read."""

from typing import Any

import streamlit as st


def show_question(row: dict[str, Any]) -> None:
    """`row` as `browse.trajectory` or `browse.sample` gives it."""
    texts = (
        ("Question", row["text"] or "not in the catalog"),
        ("Gold", row["gold"] or "unknown"),
        ("Answer read", row["extracted"] or "none"),
    )
    for column, (title, text) in zip(st.columns([3, 1, 1]), texts, strict=True):
        column.caption(title)
        column.code(text, language=None, wrap_lines=True)
    if row["prompt"] and row["prompt"] != row["text"]:
        with st.expander("The prompt as the model saw it"):
            st.code(row["prompt"], language=None, wrap_lines=True)
