"""Questions to the catalog: named ones from `analysis/sql/`, and SQL that a user types."""

import difflib
import json
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
from polars import selectors

from analysis.errors import UserError
from analysis.gate import one_select
from analysis.named import NamedQuery, read_query

FOLDER = Path(__file__).parent / "sql"
VECTOR = 2048  # rows that DuckDB makes at a time
MOST_KNOWN = 50  # names that one message lists
MOST_BYTES = 64 * 2**20  # of one answer to typed SQL

# Arrow types that neither polars nor CSV and JSON have; `(?!:)`: not the name of a part.
_NOT_SHOWN = re.compile(
    r"\b(\w+_interval|(large_|fixed_size_)?binary(_view)?)\b(?!:)|_union<|map<(list|struct|map)"
)


Parameters = Mapping[str, Any] | Iterable[tuple[str, Any]]  # values by name


@dataclass(frozen=True)
class Answer:
    """The first rows of an answer; `truncated` says that there were more.

    Fewer rows than were asked for, and truncated: more would be above `MOST_BYTES`.
    """

    frame: pl.DataFrame
    truncated: bool
    seconds: float


def ask(connection: duckdb.DuckDBPyConnection, sql: str, limit: int = 1000) -> Answer:
    """Answer SQL that a user typed: its first rows, at most `limit` and at most `MOST_BYTES`.

    Exactly one SELECT (WITH, FROM, DESCRIBE, SHOW and SUMMARIZE count as such) of the catalog's
    tables is let through; the connection of `open_catalog` forbids writing, too much time, and
    too much memory for sorting, grouping and joining. Rows are read a vector at a time, for DuckDB
    does not count the texts of a vector: made-up texts of many megabytes can still take more for
    a moment. Integers beyond 64 bits stay decimals. Raises UserError with DuckDB's own reason.
    """
    start = time.perf_counter()
    with connection.cursor() as cursor:
        try:
            statement = one_select(cursor, sql)
        except duckdb.Error as error:
            raise UserError(explain(error)) from error
        try:
            rows, cut = _first_rows(cursor.sql(statement), limit + 1)
        except (duckdb.Error, OSError) as error:  # OSError: DuckDB's, after the first rows
            raise UserError(explain(_located(cursor, statement, error))) from error
        except (pl.exceptions.ComputeError, pa.ArrowException) as error:
            raise UserError(
                f"the answer has a column that cannot be shown: {error}. "
                f"Cast it, for example `CAST(x AS VARCHAR)`."
            ) from error
    frame = _plain_integers(rows.head(limit))
    _check_dates(frame)
    return Answer(frame, cut or rows.height > limit, time.perf_counter() - start)


def explain_plan(connection: duckdb.DuckDBPyConnection, sql: str) -> str:
    """How DuckDB would answer SQL that a user typed, as text; nothing of it is run.

    It goes through the gate of `ask`. EXPLAIN is ours: a typed one may run what it explains.
    """
    with connection.cursor() as cursor:
        try:
            statement = one_select(cursor, sql)
        except duckdb.Error as error:
            raise UserError(explain(error)) from error
        try:
            return _plan(cursor, statement, {})
        except duckdb.Error as error:
            raise UserError(explain(_located(cursor, statement, error))) from error


def explain_named(connection: duckdb.DuckDBPyConnection, name: str, parameters: Parameters) -> str:
    """How DuckDB would answer a named query, as text. Raises UserError as `ask_named` does."""
    query, bound = bind(name, parameters)
    with connection.cursor() as cursor:
        try:
            return _plan(cursor, query.sql, bound)
        except duckdb.Error as error:
            raise UserError(f"query {name!r}: {_explain_ours(error)}") from error


def _plan(cursor: duckdb.DuckDBPyConnection, statement: str, bound: dict[str, Any]) -> str:
    rows = cursor.execute(f"EXPLAIN\n{statement}", bound).fetchall()
    return "\n".join(text for _, text in rows)


def flat(frame: pl.DataFrame) -> pl.DataFrame:
    """The frame with lists and structures as JSON text, for CSV has neither."""
    return frame.with_columns(
        pl.Series(
            column.name,
            [
                None if value is None else json.dumps(value, default=str)
                for value in column.to_list()
            ],
            dtype=pl.String,
        )
        for column in frame
        if column.dtype.is_nested()
    )


@cache
def named_queries() -> dict[str, NamedQuery]:
    """Every query of `analysis/sql/`, by name."""
    return {path.stem: read_query(path) for path in sorted(FOLDER.glob("*.sql"))}


def answer(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pl.DataFrame:
    """All rows of the named query.

    A parameter that is not given has its default; a value may be given as text. Raises UserError
    on an unknown name or parameter, on one that is missing, and on a value of another type.
    """
    query, bound = bind(name, parameters)
    with connection.cursor() as cursor:
        try:
            return cursor.sql(query.sql, params=bound).pl()
        except duckdb.Error as error:
            raise UserError(f"query {name!r}: {_explain_ours(error)}") from error


def ask_named(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    parameters: Parameters,
    limit: int = 1000,
) -> Answer:
    """The first rows of the named query, within the limits of `ask`.

    Raises as `answer` does, and on a study or run that the catalog does not hold.
    """
    query, bound = bind(name, parameters)
    start = time.perf_counter()
    with connection.cursor() as cursor:
        _check_scope(cursor, bound)
        try:
            rows, cut = _first_rows(cursor.sql(query.sql, params=bound), limit + 1)
        except (duckdb.Error, OSError) as error:
            raise UserError(f"query {name!r}: {_explain_ours(error)}") from error
    return Answer(rows.head(limit), cut or rows.height > limit, time.perf_counter() - start)


def find_query(name: str) -> NamedQuery:
    """The query of that name. Raises UserError when there is none."""
    queries = named_queries()
    if name not in queries:
        raise UserError(f"unknown query {name!r}. {_known(name, list(queries))}")
    return queries[name]


def bind(name: str, parameters: Parameters) -> tuple[NamedQuery, dict[str, Any]]:
    """The query, and a value for each of its parameters. Raises UserError as `answer` does."""
    query, given = find_query(name), dict(parameters)
    for key in given.keys() - query.parameters.keys():
        raise UserError(
            f"query {name!r} has no parameter {key!r} (value {given[key]!r}). "
            f"{_known(key, list(query.parameters))}"
        )
    bound: dict[str, Any] = {}
    for key, parameter in query.parameters.items():
        if parameter.required and key not in given:
            raise UserError(f"query {name!r} needs the parameter {key!r}: {parameter.meaning}")
        try:
            bound[key] = parameter.read(given.get(key, parameter.default))
        except ValueError as error:
            raise UserError(
                f"query {name!r}: parameter {key!r}: the value {given[key]!r} is no "
                f"{parameter.type}: {error}."
            ) from error
    return query, bound


def _check_scope(cursor: duckdb.DuckDBPyConnection, bound: Mapping[str, Any]) -> None:
    """Raise UserError when no run of the catalog has this study or id: a typing mistake."""
    for column in ("study", "run"):
        value = bound.get(column)
        asked = [value] if isinstance(value, str) else value or []
        known = [each for (each,) in cursor.sql(f"SELECT DISTINCT {column} FROM runs").fetchall()]
        for each in asked:
            if each not in known:
                raise UserError(f"the catalog has no {column} {each!r}. {_known(each, known)}")


def _first_rows(relation: duckdb.DuckDBPyRelation, count: int) -> tuple[pl.DataFrame, bool]:
    """The first `count` rows, or the fewer that `MOST_BYTES` hold; whether it had to be fewer."""
    names = list(relation.limit(0).fetchnumpy())  # told apart where two have one name
    batches: list[pa.RecordBatch] = []
    room, cut = MOST_BYTES, False
    with relation.limit(count).to_arrow_reader(VECTOR) as reader:
        _check_types(reader.schema)
        for batch in reader:
            rows = batch
            while rows.nbytes > room and rows.num_rows:
                rows = rows.slice(0, rows.num_rows // 2)
            if cut := rows.num_rows < batch.num_rows:
                # A copy: a slice would keep the whole batch in memory.
                rows = rows.take(pa.array(range(rows.num_rows), pa.int64()))
            batches.append(rows)
            room -= rows.nbytes
            if cut:
                break
        table = pa.Table.from_batches(batches, schema=reader.schema)
    if cut and not table.num_rows:
        raise UserError(
            f"the first row alone is larger than {MOST_BYTES >> 20} MB. Cut its texts, for "
            f"example `left(x, 1000)`."
        )
    frame = pl.from_arrow(table.rename_columns(names))
    assert isinstance(frame, pl.DataFrame)
    return frame, cut


def _check_types(schema: pa.Schema) -> None:
    """Raise UserError on a column, or a part of one, of a type that cannot be shown."""
    for field in schema:
        if _NOT_SHOWN.search(str(field.type)):
            raise UserError(
                f"the answer has a column that cannot be shown: {field.name!r} is "
                f"{str(field.type)[:100]}. Cast it, for example `CAST(x AS VARCHAR)`."
            )


def _check_dates(frame: pl.DataFrame) -> None:
    """Raise UserError on dates that Python has not: before year 1, after 9999, or infinite."""
    dates = selectors.date() | selectors.datetime(("us", "ms"))  # those of ns are near enough
    for column in frame.select(dates.to_physical()):
        type_ = frame.schema[column.name]
        ends = pl.Series([datetime.min, datetime.max]).cast(type_).to_physical()
        if not column.is_between(ends[0], ends[1]).all():
            raise UserError(
                f"the answer has a column that cannot be shown: {column.name!r} has a date "
                f"outside the years 1 to 9999. Cast it, for example `CAST(x AS VARCHAR)`."
            )


def _located(cursor: duckdb.DuckDBPyConnection, sql: str, error: Exception) -> Exception:
    """The same error with its place in `sql`, if it has one that is known before it runs.

    A relation tells none, or one in the SQL that DuckDB wraps around it.
    """
    try:
        cursor.execute(f"PREPARE asked AS {sql}")
    except duckdb.Error as located:
        if type(located) is type(error):
            return located
    return type(error)(str(error).partition("\n\nLINE ")[0])


@contextmanager
def asking(
    connection: duckdb.DuckDBPyConnection, about: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A cursor for questions of our own; DuckDB's errors are told as UserError, with `about`."""
    with connection.cursor() as cursor:
        try:
            yield cursor
        except duckdb.Error as error:
            raise UserError(f"{about}: {explain(error)}") from error


def _explain_ours(error: Exception) -> str:
    """The message for a query of ours: what it misses, an older catalog lacks."""
    older = isinstance(error, duckdb.CatalogException | duckdb.BinderException)
    remedy = " The catalog is of another version: build it again with `exgrpo catalog`."
    return explain(error) + remedy * older


def explain(error: Exception) -> str:
    """DuckDB's message in one line, with the place in the SQL that it points at."""
    if str(error).startswith("INTERRUPT Error"):
        return "stopped at the time limit. Ask for fewer rows: filter by run or step."
    lines = str(error).splitlines()
    if lines[0].startswith("Out of Memory Error"):
        return f"{lines[0]}. Ask for fewer rows: filter by run or step."
    message = " ".join(line.strip() for line in lines[: _place(lines)] if line.strip())
    if _place(lines) + 1 >= len(lines):
        return message
    source, carets = lines[_place(lines)], lines[_place(lines) + 1]
    start = len(carets) - len(carets.lstrip())
    number = source.partition(":")[0].removeprefix("LINE ")
    return f"{message} (line {number}, at `{source[start : len(carets)].strip()}`)"


def _place(lines: list[str]) -> int:
    """The index of DuckDB's line `LINE 1: select ...`; the number of lines if there is none."""
    return next((i for i, line in enumerate(lines) if re.match(r"LINE \d+:", line)), len(lines))


def _plain_integers(frame: pl.DataFrame) -> pl.DataFrame:
    """SUM of integers comes back as a 38-digit decimal: make it an integer where it fits."""
    wide = [name for name, type_ in frame.schema.items() if type_ == pl.Decimal(38, 0)]
    narrow = frame.with_columns(pl.col(wide).cast(pl.Int64, strict=False))
    return frame.with_columns(
        narrow[name] for name in wide if narrow[name].null_count() == frame[name].null_count()
    )


def _known(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    shown = sorted(known)[:MOST_KNOWN]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return f"{hint}Known: {', '.join(shown) or 'none'}{more}."
