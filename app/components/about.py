"""What these results are, where their folder says so in `about.txt`, as the demo's does."""

import streamlit as st

from app import data

LONGEST = 1000  # characters


def about() -> None:
    """A line on top of every screen, as plain text."""
    path = data.results() / "about.txt"
    if path.is_file():
        st.text(path.read_text(errors="replace")[:LONGEST].strip())
