"""SQL: a typed question to the read-only catalog, or a named one with its parameters."""

from dataclasses import dataclass
from typing import Literal, get_args

import polars as pl
import streamlit as st

from analysis import queries
from analysis.errors import UserError
from analysis.named import NamedQuery, Parameter
from app import data, state
from app.components.errors import show_error
from app.components.row_picker import row_picker

Limit = Literal[100, 1000, 10_000]
LIMITS = get_args(Limit)
EXAMPLE = "select arm, seed, steps, round(seconds) as seconds\nfrom runs\norder by arm, seed"


@dataclass(frozen=True)
class Question:
    """What the address holds: a typed query, or a named one with `name=value` parameters.

    A list is several items of one name; a parameter that is not there has its default.
    """

    sql: str = ""
    named: str | None = None
    parameters: tuple[str, ...] = ()
    limit: Limit = 1000


def show() -> None:
    data.require_catalog()
    state.restore("sql")
    question = state.read(Question)
    schema, console = st.columns([2, 5], gap="medium")
    with schema, st.container(gap="xsmall"):
        _schema()
    with console:
        typed, named = st.tabs(
            ["Type a query", "Named queries"],
            default="Named queries" if question.named else None,
        )
        with typed:
            _typed(question)
        with named:
            _named(question)
        _result(state.read(Question))
    state.remember("sql")


def _typed(question: Question) -> None:
    with st.form("typed", border=False):
        sql = st.text_area(
            "SQL over the read-only catalog: one SELECT",
            value=question.sql or EXAMPLE,
            height=170,
        )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            run = st.form_submit_button("Run", type="primary")
            limit = _limit(question)
            st.caption("Ctrl+Enter runs it")
    if run:
        state.write(Question(sql=sql.strip(), limit=limit))


def _named(question: Question) -> None:
    known = queries.named_queries()
    names = sorted(known)
    name = st.selectbox(
        "Query",
        names,
        index=names.index(question.named) if question.named in known else 0,
        format_func=lambda name: f"{name} — {known[name].purpose}",
    )
    query = known[name]
    st.caption(f"One row: {query.grain}")
    given = _given(question, query)
    with st.form("named", border=False):
        values = {
            parameter.name: _field(f"{name}.{parameter.name}", parameter, given)
            for parameter in query.parameters.values()
        }
        with st.container(horizontal=True, vertical_alignment="bottom"):
            run = st.form_submit_button("Run", type="primary")
            limit = _limit(question)
            st.caption("An empty field has its default")
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
    if run:
        items = tuple(f"{name}={value}" for name in values for value in values[name] if value)
        state.write(Question(named=query.name, parameters=items, limit=limit))


def _limit(question: Question) -> Limit:
    index = LIMITS.index(question.limit)
    return st.selectbox("Rows at most", LIMITS, index=index, width=130)


def _field(key: str, parameter: Parameter, given: dict[str, list[str]]) -> list[str]:
    """The values given in a field; empty or [""] for the default.

    A field to choose from where the values are known.
    """
    title = f"{parameter.name}: {parameter.meaning}"
    values = given.get(parameter.name, [])
    if parameter.name in ("study", "run"):
        known = data.answer("runs_overview")[parameter.name].unique(maintain_order=True).to_list()
    else:
        known = ["true", "false"] if parameter.type == "boolean" else []
    options = list(dict.fromkeys([*known, *values]))
    default = "required" if parameter.required else f"default: {parameter.shown_default}"
    if parameter.type == "text[]":
        return st.multiselect(
            title, options, default=values, placeholder=default, accept_new_options=True, key=key
        )
    value = values[0] if values else ""
    if not known:
        return [st.text_input(title, value=value, placeholder=default, key=key)]
    index = options.index(value) if value else None
    return [st.selectbox(title, options, index=index, placeholder=default, key=key) or ""]


def _given(question: Question, query: NamedQuery) -> dict[str, list[str]]:
    """The values of the address, by parameter."""
    given: dict[str, list[str]] = {}
    for item in question.parameters if question.named == query.name else ():
        name, _, value = item.partition("=")
        given.setdefault(name, []).append(value)
    return given


def _result(question: Question) -> None:
    if not (question.sql or question.named):
        return
    try:
        answer = _ask(question)
    except UserError as error:
        show_error(error)
        return
    rows = f"{answer.frame.height:,} row{'' if answer.frame.height == 1 else 's'}"
    cut = ", cut: the query has more" if answer.truncated else ""
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.markdown(f"**{rows}**{cut} · {answer.seconds:.2f} s")
        st.download_button(
            "CSV",
            queries.flat(answer.frame).write_csv(),
            file_name="answer.csv",
            mime="text/csv",
            on_click="ignore",
        )
    if "trajectory" not in answer.frame.columns:
        st.dataframe(answer.frame, hide_index=True, placeholder="")
        return
    ids = [str(item) for item in answer.frame["trajectory"]]
    row_picker(answer.frame, ids, st.session_state.get("sql.row"), "sql.answer", _pick)
    chosen = st.session_state.get("sql.row")
    if chosen in ids:
        st.page_link(
            "screens/trajectories.py",
            label="Open the chosen row in Trajectories",
            icon=":material/open_in_new:",
            query_params={"trajectory": chosen},
        )
    else:
        st.caption("Click a row to open its trajectory.")


def _pick(trajectory: str) -> None:
    st.session_state["sql.row"] = trajectory


def _ask(question: Question) -> queries.Answer:
    if question.named is None:
        return data.ask(question.sql, question.limit)
    query = queries.find_query(question.named)
    parameters = {
        name: values
        if name in query.parameters and query.parameters[name].type == "text[]"
        else values[0]
        for name, values in _given(question, query).items()
    }
    return data.ask_named(query.name, parameters, question.limit)


def _schema() -> None:
    st.subheader("Tables", anchor=False)
    for (table, grain), columns in data.schema().group_by("table", "grain", maintain_order=True):
        with st.expander(str(table)):
            st.caption(f"One row: {grain}")
            st.dataframe(
                columns.select("column", "type", "meaning"), hide_index=True, placeholder=""
            )


show()
