"""The DuckDB connection of whatever builds files: bounded, and silent on the terminal."""

from pathlib import Path

import duckdb

from analysis.catalog import THREADS


def open_worker(
    memory: str, path: Path | None = None, **settings: str | bool
) -> duckdb.DuckDBPyConnection:
    """A connection to the database at `path`, or to one in memory, that may use `memory`."""
    connection = duckdb.connect(
        path or ":memory:", config={"memory_limit": memory, "threads": THREADS, **settings}
    )
    connection.execute("SET enable_progress_bar = false")  # no setting that `config` takes
    return connection
