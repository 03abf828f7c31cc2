"""Questions to the catalog: named ones from `analysis/sql/`, and SQL that a user types."""

import difflib
import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from analysis.errors import UserError

FOLDER = Path(__file__).parent / "sql"


@dataclass(frozen=True)
class Answer:
    """The first rows of an answer; `truncated` says that there were more."""

    frame: pl.DataFrame
    truncated: bool
    seconds: float


@dataclass(frozen=True)
class NamedQuery:
    """One file of `analysis/sql/`: what it asks, what one row is, parameters and columns."""

    name: str
    purpose: str
    grain: str
    parameters: dict[str, str]
    columns: dict[str, str]
    sql: str


def ask(connection: duckdb.DuckDBPyConnection, sql: str, limit: int = 1000) -> Answer:
    """Answer SQL that a user typed, at most `limit` rows of it.

    Exactly one SELECT (WITH, FROM, DESCRIBE, SHOW and SUMMARIZE count as such) is let through;
    the connection of `open_catalog` forbids the rest: files, settings, and too much time or
    memory. Integers beyond 64 bits stay decimals. Raises UserError with DuckDB's own reason.
    """
    start = time.perf_counter()
    with connection.cursor() as cursor:
        try:
            statement = _one_select(cursor, sql)
            rows = cursor.sql(statement).limit(limit + 1).pl()
        except duckdb.Error as error:
            raise UserError(_explain(_located(cursor, sql, error))) from error
        except pl.exceptions.ComputeError as error:
            raise UserError(
                f"the answer has a column that cannot be shown: {error}. "
                f"Cast it, for example `CAST(x AS VARCHAR)`."
            ) from error
    frame = _plain_integers(rows.head(limit))
    return Answer(frame, rows.height > limit, time.perf_counter() - start)


@cache
def named_queries() -> dict[str, NamedQuery]:
    """Every query of `analysis/sql/`, by name."""
    return {path.stem: _parse(path) for path in sorted(FOLDER.glob("*.sql"))}


def answer(connection: duckdb.DuckDBPyConnection, name: str, **parameters: Any) -> pl.DataFrame:
    """All rows of the named query. Raises UserError on an unknown name or parameter."""
    queries = named_queries()
    if name not in queries:
        raise UserError(f"unknown query {name!r}. {_known(name, list(queries))}")
    query = queries[name]
    for given in parameters.keys() - query.parameters.keys():
        raise UserError(
            f"query {name!r} has no parameter {given!r} (value {parameters[given]!r}). "
            f"{_known(given, list(query.parameters))}"
        )
    if missing := query.parameters.keys() - parameters.keys():
        raise UserError(
            f"query {name!r} needs the parameter {min(missing)!r}: {query.parameters[min(missing)]}"
        )
    with connection.cursor() as cursor:
        try:
            return cursor.sql(query.sql, params=parameters).pl()
        except duckdb.Error as error:
            raise UserError(f"query {name!r}: {_explain(error)}") from error


def _one_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The one statement in `sql`; UserError when it is not exactly one SELECT."""
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise UserError(
            f"expected one statement, found {len(statements)}. Ask one SELECT at a time."
        )
    kind = statements[0].type
    if kind != duckdb.StatementType.SELECT:
        hint = "Write PIVOT as conditional sums, `sum(x) FILTER (WHERE ...)`. "
        raise UserError(
            f"{kind.name} is refused: only SELECT reads the catalog, and nothing changes it. "
            + (hint if kind == duckdb.StatementType.MULTI else "")
            + "See `exgrpo sql` and `\\d` for its tables."
        )
    return statements[0].query


def _located(cursor: duckdb.DuckDBPyConnection, sql: str, error: duckdb.Error) -> duckdb.Error:
    """The same error with its place in the SQL, which a relation does not tell, if it has one."""
    try:
        cursor.execute(f"PREPARE asked AS {sql}")
    except duckdb.Error as located:
        return located if type(located) is type(error) else error
    return error


def _explain(error: duckdb.Error) -> str:
    """DuckDB's message in one line, with the place in the SQL that it points at."""
    if isinstance(error, duckdb.InterruptException):
        return "stopped at the time limit. Ask for fewer rows: filter by run or step."
    lines = str(error).splitlines()
    if isinstance(error, duckdb.OutOfMemoryException):
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


def _parse(path: Path) -> NamedQuery:
    """Read a query file: its header comments, then SQL. Raises UserError on an incomplete one."""
    text = path.read_text()
    header: dict[str, str] = {}
    parameters: dict[str, str] = {}
    columns: dict[str, str] = {}
    for line in text.splitlines():
        match = re.fullmatch(r"-- (?:(param|column) )?(\w+): (.+)", line)
        if not match:
            break
        kind, key, meaning = match.groups()
        {"param": parameters, "column": columns, None: header}[kind][key] = meaning
    used = set(re.findall(r"\$(\w+)", re.sub(r"--.*", "", text)))
    if header.keys() != {"purpose", "grain"} or used != parameters.keys() or not columns:
        raise UserError(
            f"{path}: incomplete header: needs `-- purpose:`, `-- grain:`, one `-- column x:` a "
            f"column, and one `-- param x:` for each of {sorted(used) or 'no parameters'}."
        )
    return NamedQuery(path.stem, header["purpose"], header["grain"], parameters, columns, text)


def _known(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"Did you mean {close[0]!r}? " if close else ""
    return f"{hint}Known: {', '.join(sorted(known)) or 'none'}."
