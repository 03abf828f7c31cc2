"""Rows as a file to be saved."""

from functools import partial

import polars as pl
import streamlit as st

from analysis.exporting import EXPORTS, SPREADSHEETS


def show_export(frame: pl.DataFrame, name: str, title: str = "Save page") -> None:
    """Buttons that save the frame, one for each format; `name` is the file's without its ending."""
    with st.popover(title, icon=":material/download:"):
        st.caption(f"CSV: {SPREADSHEETS[0].lower()}{SPREADSHEETS[1:]}")
        for format, (ending, mime, written) in EXPORTS.items():
            st.download_button(
                format, partial(written, frame), f"{name}.{ending}", mime, on_click="ignore"
            )
