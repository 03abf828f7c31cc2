"""The browser's questions: one page of filtered trajectories or samples, and one whole one."""

from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from analysis.browse_filters import TABLES, Filters, Source, active, conditions
from analysis.errors import UserError
from analysis.paging import Order, Selection, rows_of_page
from analysis.queries import asking, explain
from analysis.sample_id import SAMPLE_ID, sample_key
from analysis.snippet import snippet
from analysis.sql_types import quoted

__all__ = ["Choices", "Filters", "Page", "choices", "columns_of", "page", "sample", "trajectory"]

ID = "trajectory"  # the column with the id of a row, of a sample too
PREVIEW = "preview"
AGE = "age"
RUN_COLUMNS = ("study", "arm", "seed")

# Columns that are made of others: what they are made of, and in SQL.
_MADE = {
    "k_of_K": (
        ("group_successes", "group_size"),
        "group_successes || ' of ' || group_size",
    ),
    AGE: (("step", "birth_step"), "step - birth_step"),
}
_FIRST = (
    "arm", "seed", "benchmark", "step", "question", "k_of_K", "replayed", "correct", "chain_valid",
    "mean_entropy", "length", PREVIEW, "run",
)  # fmt: skip


@dataclass(frozen=True)
class Page:
    """Some rows: their id and the columns asked for; `total` is the number of all."""

    frame: pl.DataFrame
    total: int


@dataclass(frozen=True)
class Choices:
    """What there is to filter by; nothing where the table does not have the column."""

    benchmark: tuple[str, ...] = ()
    level: tuple[int, ...] = ()
    finish: tuple[str, ...] = ()
    group_successes: tuple[int, ...] = ()


def sortable(source: Source) -> tuple[str, ...]:
    """The columns that rows can be sorted by."""
    age = (AGE,) if AGE in columns_of(source) else ()
    return (*TABLES[source].names, *RUN_COLUMNS, *age)


def columns_of(source: Source) -> tuple[str, ...]:
    """The columns that can be shown: those of the table and its runs, and some made of them."""
    names = TABLES[source].names
    made = [name for name, (needs, _) in _MADE.items() if set(needs) <= set(names)]
    return tuple(dict.fromkeys((ID, *RUN_COLUMNS, *names, *made, PREVIEW)))


def first_columns(source: Source) -> tuple[str, ...]:
    """The columns that are shown unless others are asked for."""
    return tuple(name for name in _FIRST if name in columns_of(source))


def page(
    connection: duckdb.DuckDBPyConnection,
    filters: Filters,
    offset: int,
    size: int,
    columns: tuple[str, ...] = (),
    ids: tuple[str, ...] | None = None,
) -> Page:
    """Rows `offset` .. `offset + size` of the filtered rows, and how many there are.

    `columns` are names of `columns_of`, by default `first_columns`; `preview` is the beginning of
    the response, or the surroundings of the first hit where `filters.text` is searched for. `ids`:
    only rows with one of these ids. Ties keep the order of the log; an offset beyond the end gives
    no rows. Raises UserError on a column that does not exist, on a pattern that is none, at the
    time limit, and on a catalog that cannot be read.
    """
    table = TABLES[filters.source]
    if filters.sort not in sortable(filters.source):
        known = ", ".join(sortable(filters.source))
        raise UserError(f"cannot sort by {filters.sort!r}. Columns: {known}.")
    made = _MADE[AGE][1] if filters.sort == AGE else None
    order = Order(table, filters.sort, filters.descending, made)
    columns = columns or first_columns(filters.source)
    for name in columns:
        if name not in columns_of(filters.source):
            raise UserError(f"cannot show the column {name!r}: there is none.")
    searched = PREVIEW in columns and "text" in active(filters)
    shown = ", ".join(
        f"{_sql(filters, name)} AS {quoted([name])}" for name in dict.fromkeys((ID, *columns))
    )
    with asking(connection, "trajectories") as cursor:
        if filters.regex and filters.text:
            _check_pattern(cursor, filters.text)
        selection = Selection(cursor, *conditions(filters, ids))
        rows, total = rows_of_page(selection, order, offset, size)
        values: dict[str, Any] = {"rows": rows} | ({"text": filters.text} if searched else {})
        # Looked up by the ids of a subquery: a list of them would be tried on every row.
        sql = f"""
            SELECT {shown} FROM {table.name} JOIN runs USING (run)
            WHERE {table.name}.rowid IN (SELECT unnest($rows::BIGINT[])) {order.sql}
        """
        frame = cursor.sql(sql, params=values).pl()
    return Page(frame, total)


def choices(connection: duckdb.DuckDBPyConnection, source: Source) -> Choices:
    """The values that the table holds of the columns with few of them, in order."""
    table = TABLES[source]
    names = [name for name in Choices.__annotations__ if name in table.names]
    with asking(connection, "trajectories") as cursor:
        found = {
            name: cursor.sql(f"SELECT DISTINCT {name} AS value FROM {table.name}").pl()["value"]
            for name in names
        }
    return Choices(**{name: tuple(values.drop_nulls().sort()) for name, values in found.items()})


def trajectory(connection: duckdb.DuckDBPyConnection, id: str) -> pl.DataFrame:
    """The one row of a trajectory with study, arm, seed, tokenizer, question text, prompt, gold.

    No row when there is no such trajectory. Raises UserError as `page` does.
    """
    condition = "trajectory = $id"
    return _whole(connection, "training", condition, "q.split = 'train'", {"id": id})


def sample(connection: duckdb.DuckDBPyConnection, id: str) -> pl.DataFrame:
    """The same of an evaluation sample, whose id is the column `trajectory`."""
    key = sample_key(id)
    if key is None:
        return pl.DataFrame()
    names = key._fields
    condition = " AND ".join(f"{name} = ${name}" for name in names)
    return _whole(connection, "evaluation", condition, "q.split = benchmark", key._asdict())


def _whole(
    connection: duckdb.DuckDBPyConnection,
    source: Source,
    condition: str,
    its_split: str,
    values: dict[str, Any],
) -> pl.DataFrame:
    id = "" if source == "training" else f"{SAMPLE_ID} AS {ID},"
    runs = ", ".join(f"runs.{name}" for name in (*RUN_COLUMNS, "tokenizer"))
    sql = f"""
        SELECT {id} found.*, {runs}, q.text, q.prompt, q.gold
        FROM (FROM {TABLES[source].name} WHERE {condition}) AS found JOIN runs USING (run)
        LEFT JOIN questions AS q USING (question)
        ORDER BY {its_split} DESC
        LIMIT 1
    """
    with asking(connection, "trajectories") as cursor:
        return cursor.sql(sql, params=values).pl()


def _sql(filters: Filters, name: str) -> str:
    """A column that can be shown, in SQL."""
    if name == PREVIEW:
        return snippet(filters.regex if "text" in active(filters) else None)
    if name == ID and filters.source == "evaluation":
        return SAMPLE_ID
    return _MADE[name][1] if name in _MADE else quoted([name])


def _check_pattern(cursor: duckdb.DuckDBPyConnection, pattern: str) -> None:
    try:
        # Also in brackets, as the snippet has it: `\\Q` without its end would swallow them.
        for each in (pattern, f"({pattern})"):
            cursor.execute("SELECT regexp_matches('', $p)", {"p": each}).fetchall()
    except duckdb.Error as error:
        reason = explain(error).removeprefix("Invalid Input Error: ")
        raise UserError(f"{pattern!r} is no regular expression (RE2): {reason}.") from error
