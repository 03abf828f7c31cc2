"""The most surprising tokens of a trajectory as a table; a click goes to one in its place."""

import polars as pl
import streamlit as st

from analysis.surprising import most_surprising
from app import state
from app.browser import Browser, read
from app.components.row_picker import row_picker

TOP = 12
BY = {
    "improbable": "−log p when sampled",
    "entropy": "entropy",
    "ratio": "|log-ratio|",
}


def show_surprising(tokens: pl.DataFrame, browser: Browser) -> None:
    """The `TOP` tokens by what the address names, with some text around each."""
    st.segmented_control(
        "Most surprising tokens, by",
        list(BY),
        format_func=BY.__getitem__,
        required=True,
        **state.control(Browser, "surprising", browser.surprising),
    )
    found = most_surprising(tokens, browser.surprising, TOP)
    if found.is_empty():
        st.caption("The log holds no such number of this trajectory's tokens.")
        return
    st.caption("Click a row to see the token in its place.")
    row_picker(
        found.select(
            pl.col("position"),
            pl.format("{}⟦{}⟧{}", "before", pl.col("text").fill_null("�"), "after").alias(
                "token in its text"
            ),
            pl.col("value").round(4).alias(f"{BY[browser.surprising]} [nat]"),
        ),
        [str(position) for position in found["position"]],
        None if browser.token is None else str(browser.token),
        "detail.surprising",
        open_token,
        column_config={"position": st.column_config.NumberColumn(width="small")},
    )


def open_token(position: str) -> None:
    """Mark the token at a position; the part of the text that shows it follows from it."""
    state.write(state.change(read(), token=int(position), window=1))
