"""What the SQL screen shows, as its address holds it, and the questions asked in this session."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import streamlit as st

from analysis import queries
from analysis.named import NamedQuery
from app import data, state

Limit = Literal[100, 1000, 10_000, 100_000]
Seconds = Literal[10, 30, 120, 600]
ShownAs = Literal["table", "line", "bar", "scatter", "histogram", "box", "heatmap"]
LIMITS: tuple[Limit, ...] = get_args(Limit)
SECONDS: tuple[Seconds, ...] = get_args(Seconds)
SHOWN_AS: tuple[ShownAs, ...] = get_args(ShownAs)
MOST_REMEMBERED = 20
HISTORY = "sql.history"  # in the session: questions that were answered, the last one first


@dataclass(frozen=True)
class SqlQuestion:
    """A typed query, or a named one with `name=value` parameters, and how its answer is shown.

    A list is several items of one name; a parameter that is not there has its default. `row` is the
    trajectory of the row that was clicked. `table` and `find` are those of the schema browser,
    `topic` and `chosen`, a query that is not run yet, those of the named queries.
    """

    sql: str = ""
    named: str | None = None
    parameters: tuple[str, ...] = ()
    limit: Limit = 1000
    seconds: Seconds = 30
    explain: bool = False
    shown_as: ShownAs = "table"
    x: str | None = None
    y: str | None = None
    colour: str | None = None
    row: str | None = None
    topic: str | None = None
    chosen: str | None = None
    table: str | None = None
    find: str | None = None

    @property
    def asks(self) -> bool:
        return bool(self.sql or self.named)


def another(question: SqlQuestion, **changes: Any) -> SqlQuestion:
    """Another query in the place of this one: what was chosen in its answer is dropped."""
    kept = ("limit", "seconds", "shown_as", "topic", "table", "find")
    here = {field: getattr(question, field) for field in kept}
    return SqlQuestion(**{**here, **changes})


def open_sql(sql: str) -> None:
    """Ask this instead, as a table."""
    state.write(another(state.read(SqlQuestion), sql=sql, shown_as="table"))


def given(question: SqlQuestion, query: NamedQuery) -> dict[str, list[str]]:
    """The values of the address, by parameter, if they are this query's."""
    found: dict[str, list[str]] = {}
    for item in question.parameters if question.named == query.name else ():
        name, _, value = item.partition("=")
        found.setdefault(name, []).append(value)
    return found


def parameters(question: SqlQuestion, query: NamedQuery) -> dict[str, Any]:
    """The same as values: a list where the query takes one."""
    known = query.parameters
    return {
        name: values if name in known and known[name].type == "text[]" else values[0]
        for name, values in given(question, query).items()
    }


def ask(question: SqlQuestion) -> queries.Answer:
    """Raises UserError."""
    if question.named is None:
        return data.ask(question.sql, question.limit, question.seconds)
    query = queries.find_query(question.named)
    values = parameters(question, query)
    return data.ask_named(query.name, values, question.limit, question.seconds)


def explain(question: SqlQuestion) -> str:
    """The plan as text. Raises UserError."""
    if question.named is None:
        return data.plan(question.sql)
    query = queries.find_query(question.named)
    return data.plan_named(query.name, parameters(question, query))


def remember(question: SqlQuestion) -> None:
    """Put a question that was answered on top of the session's history."""
    asked = state.change(question, row=None, topic=None, chosen=None, table=None, find=None)
    history: list[SqlQuestion] = st.session_state.setdefault(HISTORY, [])
    rest = [each for each in history if _same(each) != _same(asked)]
    st.session_state[HISTORY] = [asked, *rest][:MOST_REMEMBERED]


def _same(question: SqlQuestion) -> tuple[object, ...]:
    return question.sql, question.named, question.parameters
