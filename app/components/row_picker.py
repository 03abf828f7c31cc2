"""A table in which a click on a row, anywhere in it, picks the id behind that row."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl
import streamlit as st


def row_picker(
    frame: pl.DataFrame,
    ids: Sequence[str],
    chosen: str | None,
    key: str,
    on_pick: Callable[[str], None],
    **options: Any,
) -> None:
    """Show `frame` with the row of `chosen` marked; call `on_pick` with the id that is clicked.

    `ids` holds one id a row. What is passed on is an id, never a row number: row numbers change
    with the filter and the sort.
    """
    rows = [ids.index(chosen)] if chosen in ids else []
    st.session_state[key] = {"selection": {"rows": rows}}

    def picked() -> None:
        selection = st.session_state[key]["selection"]
        cells = [row for row, _ in selection.get("cells", [])]
        fresh = [row for row in [*selection.get("rows", []), *cells] if row not in rows]
        if fresh:
            on_pick(ids[fresh[0]])

    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select=picked,
        selection_mode=["single-row", "single-cell"],
        placeholder="",
        **options,
    )
