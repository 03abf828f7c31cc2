"""Opening the catalog `workbench.duckdb`: read-only, without files, settings or network.

`analysis.catalog_build` makes it. Typed SQL can read its tables and nothing else.
"""

from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import duckdb

from analysis.errors import UserError, reason

MEMORY = "4GiB"
MOST_SPILL = "20GiB"
THREADS = 2
TIME_LIMIT = 30.0

# DuckDB makes it when a sort spills, and removes it when the catalog is closed.
SPILL = Path(gettempdir()) / f"exgrpo-spill-{uuid4().hex}"


def open_catalog(
    path: Path, seconds: float = TIME_LIMIT, spill: Path = SPILL
) -> duckdb.DuckDBPyConnection:
    """Open the catalog read-only, with no file access and locked settings.

    A query ends after `seconds`; what does not fit into memory goes to the folder `spill`. Use one
    `.cursor()` a thread. To see a catalog that was built anew, close this connection first: DuckDB
    shares one open database a path and process. Raises UserError when the catalog is missing or no
    database.
    """
    if not path.is_file():
        raise UserError(
            f"{path}: there is no catalog yet. Build it with `exgrpo catalog`, or run the "
            f"whole workflow with `make reproduce`."
        )
    limits: dict[str, str | bool | int | float | list[str]] = {
        "enable_external_access": "false",
        "python_enable_replacements": "false",
        "lock_configuration": "true",
        "memory_limit": MEMORY,
        "threads": str(THREADS),
        "temp_directory": str(spill),
        "max_temp_directory_size": MOST_SPILL,
        "max_execution_time": str(round(seconds * 1000)),
    }
    try:
        return duckdb.connect(path, read_only=True, config=limits)
    except duckdb.Error as error:
        raise UserError(
            f"{path}: cannot open the catalog: {reason(error)}. "
            f"Build it again with `exgrpo catalog`."
        ) from error


def lake_of(connection: duckdb.DuckDBPyConnection) -> str:
    """Where the lake is that this catalog was built from, for `storage.open_lake`."""
    found = connection.sql("SELECT any_value(lake) FROM catalog_info").fetchall()
    return found[0][0] or "lake"  # a catalog without entries does not say
