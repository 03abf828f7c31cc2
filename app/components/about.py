"""What these results are, where their folder says so in `about.txt`, as the demo's does."""

from contextlib import suppress

import streamlit as st

from app import data

LONGEST = 1000  # characters


def about() -> None:
    """A line on top of every screen, as plain text."""
    with suppress(OSError), (data.results() / "about.txt").open(errors="replace") as file:
        st.text(file.read(LONGEST).strip())
