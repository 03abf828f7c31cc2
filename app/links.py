"""Addresses of one screen that another one links to."""

from typing import Any

import streamlit as st

from app import state
from app.browser import Browser

Query = dict[str, list[str]]

TRAJECTORIES = "screens/trajectories.py"


def rows_query(**filters: Any) -> Query:
    """The address of the rows that pass these filters (fields of `Browser` and `Filters`)."""
    fixed = {k: tuple(v) if isinstance(v, list) else v for k, v in filters.items()}
    return state.to_query(state.change(Browser(), **fixed))


def open_rows(**filters: Any) -> None:
    """Go to the rows that pass these filters, or to `trajectory`. Not from a callback."""
    st.switch_page(TRAJECTORIES, query_params=rows_query(**filters))
