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
    on_sort: Callable[[str], None] | None = None,
    **options: Any,
) -> None:
    """Show `frame` with the row of `chosen` marked; call `on_pick` with the id that is clicked.

    `ids` holds one id a row. What is passed on is an id, never a row number: row numbers change
    with the filter and the sort. With `on_sort` a click on a header passes on the column's name
    instead of sorting the rows in sight alone.
    """
    rows = [ids.index(chosen)] if chosen in ids else []
    st.session_state[key] = {"selection": {"rows": rows}}

    def picked() -> None:
        selection = st.session_state[key]["selection"]
        if (id := clicked(selection, ids, chosen)) is not None:
            on_pick(id)
        elif on_sort is not None and selection.get("columns"):
            on_sort(selection["columns"][0])

    modes: list[Any] = ["single-row", "single-cell"]
    st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select=picked,
        selection_mode=[*modes, "single-column"] if on_sort else modes,
        placeholder="",
        **options,
    )


def clicked(selection: Any, ids: Sequence[str], chosen: str | None) -> str | None:
    """The id of the row or cell that was clicked; None when it is the one already chosen."""
    rows = [*selection.get("rows", []), *(row for row, _ in selection.get("cells", []))]
    return next((ids[row] for row in rows if ids[row] != chosen), None)
