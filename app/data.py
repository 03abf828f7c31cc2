"""The only place of the app that asks the catalog, and keeps what it answers.

Questions run in processes of their own (`analysis.background`): a page says how long one runs and
can give it up. Answers are kept by the catalog file's inode and modification time: the catalog is
replaced as a whole, so a new file is a new world.
"""

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import streamlit as st
from cachetools import LRUCache

from analysis import browse, queries
from analysis.background import Processes, Question, Version
from analysis.catalog import TIME_LIMIT, lake_of
from analysis.stage_outputs import StageOutputs, read_stage_outputs
from analysis.storage import open_lake
from analysis.tokens import read_tokens
from app.components.waiting import waiting

MOST_KEPT = 256 * 2**20  # bytes of answers, roughly
SMALL = 2**14  # bytes that an answer counts at least


def results() -> Path:
    """The results folder: `EXGRPO_RESULTS`, else `results` where the app was started."""
    return Path(os.environ.get("EXGRPO_RESULTS", "results"))


def catalog() -> Path:
    """Where the catalog is, or would be."""
    return (results() / "workbench.duckdb").resolve()


def require_catalog() -> None:
    """Stop the page, saying which command to run, when there is no catalog yet."""
    if not catalog().is_file():
        st.info(
            f"There is no catalog at `{catalog()}` yet. Run `make reproduce` for the default "
            "study, or `exgrpo import FILE` for model outputs of your own; then reload this page. "
            "`make demo` shows every screen over a small sample."
        )
        st.stop()


def answer(name: str, **parameters: Any) -> pl.DataFrame:
    """All rows of a named query. Raises UserError."""
    rows: pl.DataFrame = ask_catalog(queries.answer, name, **parameters)
    return rows


def ask(sql: str, limit: int, seconds: float = TIME_LIMIT) -> queries.Answer:
    """The answer to typed SQL. Raises UserError."""
    found: queries.Answer = ask_catalog(queries.ask, sql, limit, seconds=seconds)
    return found


def ask_named(
    name: str, parameters: Mapping[str, Any], limit: int, seconds: float = TIME_LIMIT
) -> queries.Answer:
    """The first rows of a named query whose parameters were typed. Raises UserError."""
    given = tuple(sorted((key, _fixed(value)) for key, value in parameters.items()))
    found: queries.Answer = ask_catalog(_first_rows, name, given, limit, seconds=seconds)
    return found


def page(filters: browse.Filters, page: int, size: int) -> browse.Page:
    """Page number `page`, from 1, of the filtered trajectories: no other row is loaded."""
    found: browse.Page = ask_catalog(browse.page, filters, (page - 1) * size, size)
    return found


def trajectory(id: str) -> dict[str, Any] | None:
    """A whole trajectory with its question; None when the catalog does not hold it."""
    rows = ask_catalog(browse.trajectory, id)
    return None if rows.is_empty() else rows.row(0, named=True)


def tokens(run: str, trajectory: str) -> pl.DataFrame:
    """The tokens of a trajectory, as `analysis.tokens.read_tokens` gives them."""
    found: pl.DataFrame = ask_catalog(_tokens, catalog().parent, run, trajectory)
    return found


def schema() -> pl.DataFrame:
    """One row a column of the catalog: table, grain, column, type, meaning with its unit."""
    found: pl.DataFrame = ask_catalog(_schema)
    return found


def stage_outputs(study: str) -> StageOutputs | None:
    """What the analysis of a study left; None when there is none. Small files: read each time."""
    return read_stage_outputs(results(), study)


def ask_catalog(
    function: Callable[..., Any], *arguments: Any, seconds: float = TIME_LIMIT, **named: Any
) -> Any:
    """What `function(connection, *arguments, **named)` returns, kept for the next time.

    It must be a function of a module, its arguments hashable: it runs in another process. The page
    says so when it takes long, and whoever reads can give it up: the page then ends here. Raises
    UserError when the function does, and after `seconds`.
    """
    items = tuple(sorted((name, _fixed(value)) for name, value in named.items()))
    question = Question(_version(), function, arguments, items)
    kept = _kept()
    if (known := kept.get(question)) is not None:
        return known
    with waiting(question) as told:
        found = _processes().ask(question, seconds, told)
    kept.put(question, found)
    return found


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _first_rows(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    parameters: tuple[tuple[str, Any], ...],
    limit: int,
) -> queries.Answer:
    return queries.ask_named(connection, name, dict(parameters), limit)


def _tokens(
    connection: duckdb.DuckDBPyConnection, folder: Path, run: str, trajectory: str
) -> pl.DataFrame:
    return read_tokens(open_lake(lake_of(connection), folder), run, trajectory)


def _schema(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    tables = connection.table_function("duckdb_tables").pl()
    columns = connection.table_function("duckdb_columns").pl().filter(~pl.col("internal"))
    grains = tables.select("table_name", grain="comment")
    return columns.join(grains, on="table_name", maintain_order="left").select(
        table="table_name",
        grain="grain",
        column="column_name",
        type=pl.col("data_type").str.to_lowercase(),
        meaning="comment",
    )


class _Kept:
    """The answers that were asked for last, for all sessions."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: LRUCache[Question, Any] = LRUCache(MOST_KEPT, getsizeof=_size)

    def get(self, question: Question) -> Any:
        with self._lock:
            return self._answers.get(question)

    def put(self, question: Question, answer: Any) -> None:
        with self._lock:
            if _size(answer) <= MOST_KEPT:
                self._answers[question] = answer


def _size(answer: Any) -> int:
    frame = getattr(answer, "frame", answer)
    return max(SMALL, int(frame.estimated_size()) if isinstance(frame, pl.DataFrame) else SMALL)


@st.cache_resource(show_spinner=False)
def _kept() -> _Kept:
    return _Kept()


@st.cache_resource(show_spinner=False, on_release=Processes.end)
def _processes() -> Processes:
    return Processes()


def _version() -> Version:
    status = catalog().stat()
    return Version(catalog(), status.st_ino, status.st_mtime_ns)
