"""Where a question is written: typed SQL with examples, or a named query with its parameters."""

from collections.abc import Callable

import polars as pl
import streamlit as st

from analysis import queries
from analysis.copying import with_values
from analysis.errors import UserError
from analysis.examples import EXAMPLES, FIRST
from analysis.named import OTHER_TOPIC, TOPICS, NamedQuery, Parameter, topic
from app import data, state
from app.sql_question import LIMITS, SECONDS, Limit, Seconds, SqlQuestion, another, given, open_sql

TEXT, FILLED = "sql.text", "sql.filled"  # in the session: the box, and the address it is of
TIMES = {10: "10 s", 30: "30 s", 120: "2 min", 600: "10 min"}


def typed(question: SqlQuestion) -> None:
    """One SELECT in a box; it goes into the address when it is run."""
    # The box is filled when the address has changed, and not by what was typed in it just now.
    if TEXT not in st.session_state or st.session_state.get(FILLED) != question.sql:
        st.session_state[TEXT] = question.sql or FIRST
        st.session_state[FILLED] = question.sql
    with st.form("typed", border=False):
        sql = st.text_area("SQL over the read-only catalog: one SELECT", key=TEXT, height=170)
        pressed = _buttons(question, "Ctrl+Enter runs it")
    if pressed:
        st.session_state[FILLED] = sql.strip()
        state.write(pressed(another(question, sql=sql.strip())))
    with st.container(horizontal=True, gap="small"):
        st.caption("Examples:")
        for title, example in EXAMPLES.items():
            st.button(title, type="tertiary", on_click=open_sql, args=(example,))


def named(question: SqlQuestion) -> None:
    """A query of `analysis/sql/`; its values go into the address when it is run."""
    known = queries.named_queries()
    topics = (*TOPICS, OTHER_TOPIC)
    about = question.topic if question.topic in topics else None
    st.pills("About", topics, **state.control(SqlQuestion, "topic", about, chosen=None))
    names = sorted(name for name in known if about is None or topic(name) == about)
    chosen = question.chosen if question.chosen in known else question.named
    if chosen in known and chosen not in names:
        names.append(chosen)
    if not names:
        st.info("No query is about this.")
        return
    name = st.selectbox(
        "Query (type to search)",
        names,
        format_func=lambda name: f"{name} — {known[name].purpose}",
        **state.control(SqlQuestion, "chosen", chosen if chosen in names else names[0]),
    )
    query = known[name]
    st.caption(f"One row: {query.grain}")
    values = given(question, query)
    known_values = {
        parameter.name: _known(parameter)  # not in the form: asking may show a button to cancel it
        for parameter in query.parameters.values()
    }
    with st.form("named", border=False):
        fields = {
            each: _field(f"{name}.{each}", parameter, known_values[each], values.get(each, []))
            for each, parameter in query.parameters.items()
        }
        pressed = _buttons(question, "An empty field has its default")
    if pressed:
        items = tuple(f"{name}={value}" for name in fields for value in fields[name] if value)
        state.write(pressed(another(question, named=query.name, parameters=items)))
    _about(query, fields)


def _about(query: NamedQuery, fields: dict[str, list[str]]) -> None:
    columns, text = st.columns(2)
    with columns.expander("Columns"):
        st.dataframe(
            pl.DataFrame(
                {"column": list(query.columns), "meaning": list(query.columns.values())},
                schema={"column": pl.String, "meaning": pl.String},
            ),
            hide_index=True,
        )
    with text.expander("The SQL"):
        st.code(query.sql, language="sql", wrap_lines=True)
        st.button("Edit a copy", on_click=_edit, args=(query, fields))


def _edit(query: NamedQuery, fields: dict[str, list[str]]) -> None:
    """Put the SQL of a named query into the editor, with the values of its fields."""
    values = {name: items for name, items in fields.items() if any(items)}
    try:
        _, bound = queries.bind(
            query.name,
            {
                name: items if query.parameters[name].type == "text[]" else items[0]
                for name, items in values.items()
            },
        )
    except UserError:  # a value is missing: its parameter stays to be filled in
        open_sql(with_values(query.sql, {}))
        return
    open_sql(with_values(query.sql, bound))


def _buttons(question: SqlQuestion, hint: str) -> Callable[[SqlQuestion], SqlQuestion] | None:
    """Run and Explain with the limits; what a press does to the question that was written."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = st.form_submit_button("Run", type="primary")
        explain = st.form_submit_button("Explain", help="How DuckDB would answer it; nothing runs")
        limit: Limit = st.selectbox(
            "Rows at most", LIMITS, LIMITS.index(question.limit), lambda n: f"{n:,}", width=130
        )
        seconds: Seconds = st.selectbox(
            "Time at most", SECONDS, SECONDS.index(question.seconds), TIMES.__getitem__, width=110
        )
        st.caption(hint)
    if not (run or explain):
        return None
    return lambda asked: state.change(asked, limit=limit, seconds=seconds, explain=explain)


def _known(parameter: Parameter) -> list[str]:
    """The values that can be chosen; none where any can be typed."""
    if parameter.name in ("study", "run"):
        names = data.answer("runs_overview")[parameter.name]
        return [str(name) for name in names.unique(maintain_order=True)]
    return ["true", "false"] if parameter.type == "boolean" else []


def _field(key: str, parameter: Parameter, known: list[str], here: list[str]) -> list[str]:
    """The values given in a field; empty or [""] for the default.

    known: values to choose from, if any; here: those of the address.
    """
    title = f"{parameter.name}: {parameter.meaning}"
    options = list(dict.fromkeys([*known, *here]))
    default = "required" if parameter.required else f"default: {parameter.shown_default}"
    if parameter.type == "text[]":
        return st.multiselect(
            title, options, default=here, placeholder=default, accept_new_options=True, key=key
        )
    value = here[0] if here else ""
    if not known:
        return [st.text_input(title, value=value, placeholder=default, key=key)]
    index = options.index(value) if value else None
    return [st.selectbox(title, options, index=index, placeholder=default, key=key) or ""]
