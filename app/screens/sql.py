"""SQL: a typed question to the read-only catalog, or a named one with its parameters."""

import streamlit as st

from app import data, state
from app.components.sql_editor import named, typed
from app.components.sql_result import history, show_answer
from app.components.sql_schema import schema_browser
from app.sql_question import SqlQuestion


def show() -> None:
    data.require_catalog()
    state.restore("sql")
    question = state.read(SqlQuestion)
    console, tables = st.columns([5, 3], gap="medium")
    with console:
        write, choose = st.tabs(
            ["Type a query", "Named queries"],
            default="Named queries" if question.named or question.chosen else None,
        )
        with write:
            typed(question)
        with choose:
            named(question)
        asked_before = st.container()
    with tables:
        schema_browser(question)
    question = state.read(SqlQuestion)  # with what was just run
    state.remember("sql")  # also when the answer takes long and is given up
    if question.asks:
        show_answer(question)
    with asked_before:
        history()


show()
