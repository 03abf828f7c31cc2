"""Ask the catalog in the terminal: one SELECT, a named query, or a prompt."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import duckdb
import polars as pl
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from analysis.catalog import TIME_LIMIT, open_catalog
from analysis.errors import UserError
from analysis.limits import GRACE, ending_after
from analysis.live import find_runs
from analysis.queries import MOST_BYTES, Answer, ask, ask_named, flat
from pipeline.live_catalog import live_catalog
from pipeline.terminal import printable

FORMATS = ("table", "csv", "json", "parquet")
HISTORY = ".sql_history"
UNBOUNDED = 1_000_000  # columns
MOST_SECONDS = 1_000_000

TABLES = """
SELECT table_name AS "table", estimated_size AS "rows", comment AS "one row is"
FROM duckdb_tables()
ORDER BY table_name
"""

COLUMNS = """
SELECT column_name AS "column", lower(data_type) AS type, comment AS meaning
FROM duckdb_columns()
WHERE table_name = $table
ORDER BY column_index
"""


@dataclass(frozen=True)
class Output:
    """How an answer is printed, and what it may be at most."""

    format: str = "table"
    limit: int = 1000  # rows
    seconds: float = TIME_LIMIT


DEFAULT = Output()


def print_answer(results: Path, query: str, output: Output = DEFAULT, live: bool = False) -> None:
    """Print the answer to one SELECT: a table for the screen, CSV, JSON lines, or a Parquet file.

    That rows were left out is said on standard error, so that all but the table stay clean.
    live: ask the catalog of this moment, with what runs have logged that are not in the lake yet.
    """
    _check(output)
    with _opened(results, live, output.seconds) as connection:
        _print(_in_time(output, lambda: ask(connection, query, output.limit)), output)


def print_named(
    results: Path,
    name: str,
    parameters: Mapping[str, object],
    output: Output = DEFAULT,
    live: bool = False,
) -> None:
    """Print the answer to a named query, as `print_answer` does."""
    _check(output)
    with _opened(results, live, output.seconds) as connection:
        _print(
            _in_time(output, lambda: ask_named(connection, name, parameters, output.limit)), output
        )


def prompt(results: Path, output: Output = DEFAULT, live: bool = False) -> None:
    r"""Answer statements until `\q`: at a prompt, or one a line from standard input.

    `\d` lists the tables, `\d TABLE` its columns with their meaning. A mistake in one statement
    does not end the prompt; from standard input it does.
    """
    _check(output)
    with _opened(results, live, output.seconds) as connection:
        if not sys.stdin.isatty():
            for statement in _statements(sys.stdin.read()):
                _respond(connection, statement, output)
            return
        print("SELECT ... asks, \\d lists the tables, \\d TABLE its columns, \\q ends.")
        if live:
            print("The rows are those of this moment; open the prompt again for newer ones.")
        else:
            print(f"In the DuckDB shell: duckdb -readonly {_catalog(results)}")
        for statement in _typed(results):
            try:
                _respond(connection, statement, output)
            except UserError as error:
                print(f"error: {printable(str(error))}", file=sys.stderr)


def _in_time(output: Output, question: Callable[[], Answer]) -> Answer:
    """The answer, within the time limit also where DuckDB does not look at it."""
    late = f"the query took more than {output.seconds:g} s and could not be stopped, so this ends"
    with ending_after(output.seconds + GRACE, lambda: print(f"error: {late}", file=sys.stderr)):
        return question()


def _check(output: Output) -> None:
    """Raise UserError on an unknown format, on Parquet for a screen, and on time without end."""
    if output.seconds > MOST_SECONDS:
        raise UserError(f"--seconds {output.seconds}: at most {MOST_SECONDS:,}.")
    if output.format not in FORMATS:
        raise UserError(f"unknown format {output.format!r}. Known: {', '.join(FORMATS)}.")
    if output.format == "parquet" and sys.stdout.isatty():
        raise UserError(
            "--format parquet writes bytes, no text for a screen. Send them into a file: "
            "`exgrpo sql ... --format parquet > answer.parquet`."
        )


def _opened(
    results: Path, live: bool, seconds: float
) -> AbstractContextManager[duckdb.DuckDBPyConnection]:
    """The catalog, or that of this moment. UserError when it is missing, see `open_catalog`."""
    if live:
        return live_catalog(results, seconds)
    if not _catalog(results).is_file() and _has_logs(results):
        raise UserError(
            f"{_catalog(results)}: there is no catalog yet, but there are logs of runs: "
            f"`exgrpo sql --live` asks those. The catalog comes when `exgrpo reproduce` has ended."
        )
    return open_catalog(_catalog(results), seconds)


def _has_logs(results: Path) -> bool:
    return any((run.folder / "log").is_dir() for run in find_runs(results))


def _catalog(results: Path) -> Path:
    return results / "workbench.duckdb"


def _typed(results: Path) -> Iterator[str]:
    r"""What the user types, until `\q` or the end of input; Ctrl-C drops a line."""
    session: PromptSession[str] = PromptSession(history=FileHistory(str(results / HISTORY)))
    while True:
        try:
            statement = session.prompt("sql> ").strip()
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        if statement in ("\\q", "exit", "quit"):
            return
        if statement:
            yield statement


def _statements(text: str) -> Iterator[str]:
    r"""Statements of a script: `\d` lines, and SQL that ends at a semicolon or at the end."""
    sql = ""
    for line in text.splitlines():
        if not sql.strip() and line.startswith("\\"):
            if line.strip() == "\\q":
                return
            yield line.strip()
            continue
        sql += line + "\n"
        if line.rstrip().endswith(";"):
            yield sql
            sql = ""
    if sql.strip():
        yield sql


def _respond(connection: duckdb.DuckDBPyConnection, statement: str, output: Output) -> None:
    if statement.startswith("\\"):
        _describe(connection, statement.rstrip(";"))
    else:
        _print(_in_time(output, lambda: ask(connection, statement, output.limit)), output)


def _describe(connection: duckdb.DuckDBPyConnection, command: str) -> None:
    name, _, table = command.partition(" ")
    if name != "\\d":
        raise UserError(f"unknown command {command!r}. Known: \\d, \\d TABLE, \\q.")
    if not table:
        print_table(connection.sql(TABLES).pl())
        return
    columns = connection.sql(COLUMNS, params={"table": table.strip()}).pl()
    if columns.is_empty():
        raise UserError(f"no table {table.strip()!r}. `\\d` lists the tables.")
    print_table(columns)


def _print(answer: Answer, output: Output) -> None:
    shown = answer.frame.height
    if output.format == "csv":
        _print_data(flat(answer.frame).write_csv())
    elif output.format == "json":
        _print_data(answer.frame.write_ndjson())
    elif output.format == "parquet":
        _write_parquet(answer.frame)
    else:
        print_table(answer.frame)
        print(f"rows: {shown}, seconds: {answer.seconds:.2f}")
    if answer.truncated:
        remedy = (
            "`exgrpo sql --limit` raises it"
            if shown == output.limit
            else f"more would be above {MOST_BYTES >> 20} MB"
        )
        print(f"only the first {shown} rows; {remedy}", file=sys.stderr)


def _write_parquet(frame: pl.DataFrame) -> None:
    """Write the frame to standard output, with its lists and structures."""
    file = BytesIO()
    frame.write_parquet(file)
    sys.stdout.buffer.write(file.getvalue())
    sys.stdout.flush()


def _print_data(text: str) -> None:
    """Print CSV or JSON as it is; on a terminal without its control characters."""
    print(printable(text) if sys.stdout.isatty() else text, end="")


def print_table(frame: pl.DataFrame) -> None:
    """Print a frame; a value is text, never markup, and wraps rather than being cut.

    Into a pipe or a file a row is one line, however long.
    """
    table = RichTable(box=SIMPLE_HEAD, show_edge=False)
    for name, type_ in frame.schema.items():
        number = type_.is_numeric()
        table.add_column(
            Text(printable(name)),
            justify="right" if number else "left",
            overflow="fold",
            no_wrap=number,
        )
    for row in frame.iter_rows():
        table.add_row(*(Text(_shown(value)) for value in row))
    width = None if sys.stdout.isatty() else UNBOUNDED
    Console(highlight=False, width=width).print(table)


def _shown(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.4g}"
    return printable(str(value))
