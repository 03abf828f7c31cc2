"""A table in which a click on a row opens another screen."""

from collections.abc import Callable
from typing import Any

import polars as pl
import streamlit as st


def rows_that_open(
    frame: pl.DataFrame, key: str, opened: Callable[[int], None], **options: Any
) -> None:
    """Show `frame`; `opened` gets the number of the row that is clicked, and leaves the screen."""
    event: Any = st.dataframe(
        frame,
        key=key,
        hide_index=True,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        placeholder="",
        **options,
    )
    selection = event["selection"]
    clicked = [*selection.get("rows", []), *(row for row, _ in selection.get("cells", []))]
    if clicked and clicked[0] < frame.height:
        opened(clicked[0])
