"""The tables of the catalog and what their columns mean; a click asks about one."""

import polars as pl
import streamlit as st

from analysis import lookups
from app import data, state
from app.components.plain import plain
from app.components.row_picker import row_picker
from app.sql_question import SqlQuestion, open_sql


def schema_browser(question: SqlQuestion) -> None:
    """One table's columns, or those of any table that the reader looks for."""
    st.subheader("Tables", anchor=False)
    schema = data.schema()
    tables = schema["table"].unique(maintain_order=True).to_list()
    st.text_input(
        "Find a column",
        placeholder="a name or a meaning",
        **state.control(SqlQuestion, "find", question.find or ""),
    )
    if question.find:
        _found(schema, question.find)
        return
    table = question.table if question.table and question.table in tables else "trajectories"
    st.selectbox("Table", tables, **state.control(SqlQuestion, "table", table))
    columns = schema.filter(pl.col("table") == table)
    grain, rows = columns.select("grain", "rows").row(0)
    st.caption(f"{rows:,} rows. One row: {plain(grain or '')}")
    st.button("First rows", on_click=open_sql, args=(lookups.first_rows(table),))
    _columns(columns, columns.select("column", "type", "meaning"))


def _found(schema: pl.DataFrame, text: str) -> None:
    columns = schema.filter(
        pl.any_horizontal(
            pl.col(name).str.to_lowercase().str.contains(text.lower(), literal=True)
            for name in ("table", "column", "meaning")
        )
    )
    if columns.is_empty():
        st.caption("No table has such a column.")
        return
    _columns(columns, columns.select("table", "column", "type", "meaning"))


def _columns(columns: pl.DataFrame, shown: pl.DataFrame) -> None:
    places = list(columns.select("table", "column").iter_rows())
    ids = [f"{table}.{column}" for table, column in places]

    def ask_values(id: str) -> None:
        open_sql(lookups.frequent_values(*places[ids.index(id)]))

    row_picker(shown, ids, None, "sql.columns", ask_values, height=240)
    st.caption("Click a column for its most frequent values.")
