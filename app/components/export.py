"""The rows in sight as a file."""

import io

import polars as pl
import streamlit as st


def show_export(frame: pl.DataFrame, name: str) -> None:
    """Buttons that save the frame as CSV or Parquet."""
    with st.popover("Save page", icon=":material/download:"):
        st.download_button("CSV", frame.write_csv, f"{name}.csv", on_click="ignore")
        st.download_button("Parquet", lambda: parquet(frame), f"{name}.parquet", on_click="ignore")


def parquet(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file)
    return file.getvalue()
