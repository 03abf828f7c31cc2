"""The address of what is on the screen, to be copied."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

import streamlit as st

from app import state
from app.browser import Browser


def show_link(browser: Browser) -> None:
    """A button that opens the whole address, with a button to copy it."""
    with st.popover("Copy link", icon=":material/link:"):
        st.caption("Opens this trajectory in this view again, filters and all.")
        st.code(
            address(st.context.url or "", state.to_query(browser)), language=None, wrap_lines=True
        )


def address(page: str, query: Mapping[str, Sequence[str]]) -> str:
    """The page's address with the query; a list gives its name several times."""
    return f"{page}?{urlencode(query, doseq=True)}" if query else page
