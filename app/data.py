"""The only place of the app that opens the catalog and caches what comes out of it.

Every cache is keyed by the catalog file's inode and modification time: the catalog is replaced
as a whole, so a new file is a new world.
"""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import polars as pl
import streamlit as st

from analysis import browse, queries
from analysis.catalog import lake_of, open_catalog
from analysis.stage_outputs import StageOutputs, read_stage_outputs
from analysis.storage import open_lake
from analysis.tokens import read_tokens


class Version(NamedTuple):
    """Which catalog: two with the same values hold the same rows."""

    path: Path
    inode: int
    changed: int


def results() -> Path:
    """The results folder: `EXGRPO_RESULTS`, else `results` where the app was started."""
    return Path(os.environ.get("EXGRPO_RESULTS", "results"))


def require_catalog() -> None:
    """Stop the page, saying which command to run, when there is no catalog yet."""
    if not _path().is_file():
        st.info(
            f"There is no catalog at `{_path()}` yet. Run `make reproduce` for the default study, "
            "or `exgrpo import FILE` for model outputs of your own; then reload this page."
        )
        st.stop()


def answer(name: str, **parameters: Any) -> pl.DataFrame:
    """All rows of a named query."""
    return _answer(_version(), name, tuple(sorted(parameters.items())))


def ask(sql: str, limit: int) -> queries.Answer:
    """The answer to typed SQL. Raises UserError."""
    return _ask(_version(), sql, limit)


def ask_named(name: str, parameters: Mapping[str, Any], limit: int) -> queries.Answer:
    """The first rows of a named query whose parameters were typed. Raises UserError."""
    return _ask_named(_version(), name, tuple(sorted(parameters.items())), limit)


def page(filters: browse.Filters, page: int, size: int) -> browse.Page:
    """Page number `page`, from 1, of the filtered trajectories: no other row is loaded."""
    return _page(_version(), filters, (page - 1) * size, size)


def trajectory(id: str) -> dict[str, Any] | None:
    """A whole trajectory with its question; None when the catalog does not hold it."""
    rows = _trajectory(_version(), id)
    return None if rows.is_empty() else rows.row(0, named=True)


def tokens(run: str, trajectory: str) -> pl.DataFrame:
    """The tokens of a trajectory, as `analysis.tokens.read_tokens` gives them."""
    return _tokens(_version(), run, trajectory)


def schema() -> pl.DataFrame:
    """One row a column of the catalog: table, grain, column, type, meaning with its unit."""
    return _schema(_version())


def stage_outputs(study: str) -> StageOutputs | None:
    """What the analysis of a study left; None when there is none. Small files: read each time."""
    return read_stage_outputs(results(), study)


@st.cache_data(max_entries=200, show_spinner=False)
def _answer(version: Version, name: str, parameters: tuple[tuple[str, Any], ...]) -> pl.DataFrame:
    with _shared().cursor(version) as cursor:
        return queries.answer(cursor, name, **dict(parameters))


@st.cache_data(max_entries=20, show_spinner="asking the catalog …")
def _ask(version: Version, sql: str, limit: int) -> queries.Answer:
    with _shared().cursor(version) as cursor:
        return queries.ask(cursor, sql, limit)


@st.cache_data(max_entries=20, show_spinner="asking the catalog …")
def _ask_named(
    version: Version, name: str, parameters: tuple[tuple[str, Any], ...], limit: int
) -> queries.Answer:
    with _shared().cursor(version) as cursor:
        return queries.ask_named(cursor, name, dict(parameters), limit)


@st.cache_data(max_entries=50, show_spinner="searching …")
def _page(version: Version, filters: browse.Filters, offset: int, size: int) -> browse.Page:
    with _shared().cursor(version) as cursor:
        return browse.page(cursor, filters, offset, size)


@st.cache_data(max_entries=50, show_spinner=False)
def _trajectory(version: Version, id: str) -> pl.DataFrame:
    with _shared().cursor(version) as cursor:
        return browse.trajectory(cursor, id)


@st.cache_data(max_entries=50, show_spinner=False)
def _tokens(version: Version, run: str, trajectory: str) -> pl.DataFrame:
    with _shared().cursor(version) as cursor:
        lake = lake_of(cursor)
    return read_tokens(open_lake(lake, version.path.parent), run, trajectory)


@st.cache_data(max_entries=2, show_spinner=False)
def _schema(version: Version) -> pl.DataFrame:
    with _shared().cursor(version) as cursor:
        tables = cursor.table_function("duckdb_tables").pl()
        columns = cursor.table_function("duckdb_columns").pl().filter(~pl.col("internal"))
    grains = tables.select("table_name", grain="comment")
    return columns.join(grains, on="table_name", maintain_order="left").select(
        table="table_name",
        grain="grain",
        column="column_name",
        type=pl.col("data_type").str.to_lowercase(),
        meaning="comment",
    )


class _Shared:
    """The one open catalog of this process, for all sessions.

    DuckDB shares one open database a path, so a catalog that was built anew is seen only after
    the last reader of the old one has finished.
    """

    def __init__(self) -> None:
        self._turn = threading.Condition()
        self._readers = 0
        self._version: Version | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None

    @contextmanager
    def cursor(self, version: Version) -> Iterator[duckdb.DuckDBPyConnection]:
        """A cursor of this thread's own on that version of the catalog."""
        with self._turn:
            self._turn.wait_for(lambda: self._version == version or not self._readers)
            if self._connection is None or self._version != version:
                self._open(version)
            assert self._connection is not None
            cursor = self._connection.cursor()
            self._readers += 1
        try:
            yield cursor
        finally:
            cursor.close()
            with self._turn:
                self._readers -= 1
                self._turn.notify_all()

    def _open(self, version: Version) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._connection = open_catalog(version.path)
        self._version = version


@st.cache_resource(show_spinner=False)
def _shared() -> _Shared:
    return _Shared()


def _path() -> Path:
    return (results() / "workbench.duckdb").resolve()


def _version() -> Version:
    status = _path().stat()
    return Version(_path(), status.st_ino, status.st_mtime_ns)
