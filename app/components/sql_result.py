"""The answer to a question in SQL: table or chart, the way to its trajectories, and out of here."""

from typing import Any

import polars as pl
import streamlit as st

from analysis import queries
from analysis.copying import python, shell, with_values
from analysis.errors import UserError
from analysis.result_chart import Chart, columns, draw, first_guess, missing, opens_rows
from analysis.result_rows import trajectories
from app import data, sql_question, state
from app.components.copy_link import address
from app.components.errors import show_error
from app.components.export import show_export
from app.components.figure import show_titled
from app.components.row_picker import row_picker
from app.sql_question import HISTORY, SHOWN_AS, SqlQuestion, parameters


def show_answer(question: SqlQuestion) -> None:
    """Ask, and show what comes: rows, a plan, or what is wrong."""
    try:
        if question.explain:
            st.code(sql_question.explain(question), language=None)
            return
        answer = sql_question.ask(question)
    except UserError as error:
        show_error(error)
        return
    sql_question.remember(question)
    _head(question, answer)
    if question.shown_as == "table":
        _table(question, answer.frame)
    else:
        _chart(question, answer.frame)


def history() -> None:
    """What was asked in this session; a click asks it again."""
    asked: list[SqlQuestion] = st.session_state.get(HISTORY, [])
    if not asked:
        return
    with st.expander("Asked in this session"):
        lines = [" ".join((each.sql or _named(each)).split()) for each in asked]

        def again(place: str) -> None:
            state.write(asked[int(place)])

        places = [str(place) for place in range(len(asked))]
        row_picker(pl.DataFrame({"question": lines}), places, None, "sql.asked", again)


def _named(question: SqlQuestion) -> str:
    return " ".join((question.named or "", *question.parameters))


def _head(question: SqlQuestion, answer: queries.Answer) -> None:
    rows = f"{answer.frame.height:,} row{'' if answer.frame.height == 1 else 's'}"
    cut = ", cut: the query has more" if answer.truncated else ""
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"**{rows}**{cut} · {answer.seconds:.2f} s")
        st.segmented_control(
            "Show as",
            SHOWN_AS,
            label_visibility="collapsed",
            **state.control(SqlQuestion, "shown_as", question.shown_as),
        )
        show_export(answer.frame, "answer", "Save")
        with st.popover("Copy", icon=":material/content_copy:", type="tertiary"):
            _copy(question)


def _copy(question: SqlQuestion) -> None:
    """Text that asks the same elsewhere; without the limit on rows."""
    sql = filled = question.sql
    values: dict[str, Any] = {}
    if question.named is not None:
        query, values = queries.bind(
            question.named, parameters(question, queries.find_query(question.named))
        )
        sql, filled = query.sql, with_values(query.sql, values)
    st.caption("Link to this answer")
    link = address(st.context.url or "", state.to_query(question))
    st.code(link, language=None, wrap_lines=True)
    st.caption("DuckDB shell, all rows")
    st.code(shell(data.catalog(), filled), language=None, wrap_lines=True)
    st.caption("Python, all rows")
    st.code(python(data.catalog(), sql, values), language="python", wrap_lines=True)


def _table(question: SqlQuestion, frame: pl.DataFrame) -> None:
    ids = trajectories(frame)
    if ids is None:
        st.dataframe(frame, hide_index=True, placeholder="")
        return
    known = [id or "" for id in ids]
    chosen = question.row
    row_picker(frame, known, chosen, "sql.answer", _pick)
    if chosen and chosen in known:
        st.page_link(
            "screens/trajectories.py",
            label="Open the chosen row in Trajectories",
            icon=":material/open_in_new:",
            query_params={"trajectory": chosen},
        )
    else:
        st.caption("Click a row to open its trajectory.")


def _pick(trajectory: str) -> None:
    state.write(state.change(state.read(SqlQuestion), row=trajectory))


def _chart(question: SqlQuestion, frame: pl.DataFrame) -> None:
    assert question.shown_as != "table"
    guess = first_guess(frame, question.shown_as)
    known = columns(frame)
    if guess is None:
        st.info("The answer has no column to draw: no text, number, flag or date.")
        return
    chart = guess
    if question.x in known:
        chart = Chart(question.shown_as, str(question.x), question.y, question.colour)
    with st.container(horizontal=True):
        _choose("x", known, "x", chart.x, chart)
        _choose("y", known, "y", chart.y, chart)
        _choose("Colour by", known, "colour", chart.colour, chart)
    if said := missing(frame, chart):
        st.info(said)
        return
    plot = draw(frame, chart)
    show_titled(plot, "sql.chart")
    if not opens_rows(plot):
        st.caption(
            "The marks of this chart open no rows: those of a histogram of numbers or a heatmap "
            "never do, others where the answer has a column that names rows, such as run or arm."
        )


def _choose(title: str, known: list[str], field: str, value: str | None, chart: Chart) -> None:
    """A column; a choice also puts the others into the address, which were only a guess."""
    rest = {"x": chart.x, "y": chart.y, "colour": chart.colour} | {field: value}
    options = known if value in known or value is None else [*known, value]
    st.selectbox(
        title,
        options,
        index=None,
        placeholder="none",
        width=200,
        **state.control(SqlQuestion, field, value, **rest),
    )
