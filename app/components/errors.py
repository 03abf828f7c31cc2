"""An error that is the reader's to mend, as plain text: it may quote what an address says."""

import streamlit as st

from analysis.errors import UserError


def show_error(error: UserError) -> None:
    """The message in one line, never read as Markdown."""
    st.error("No answer:")
    st.code(" ".join(str(error).split()), language=None, wrap_lines=True)
