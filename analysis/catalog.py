"""The catalog `workbench.duckdb`: every table of the lake but `tokens`, ready for SQL.

It is built aside and put in place in one move, and then only ever opened read-only, without
access to files or to its own settings: typed SQL can read these tables and nothing else.
"""

from datetime import UTC, datetime
from glob import escape
from pathlib import Path

import duckdb
import polars as pl

from analysis.errors import UserError
from analysis.lake import Entry
from exgrpo.tables import BOOL, FLOAT, FLOATS, INT, INTS, RUNS, TABLES, TEXT, TOKENS, Table

MEMORY = "2GB"
THREADS = 2
TIME_LIMIT = 30.0

# The same fact may come from several entries (two studies that share questions or a tokenizer).
SHARED = {"questions": ("question", "split"), "vocabulary": ("tokenizer", "token_id")}

INFO = "catalog_info"
INFO_SCHEMA = {"entry": pl.String, "study": pl.String, "rows": pl.Int64, "left_out": pl.String}
INFO_MEANING = {
    "entry": "an entry of the lake: a run, a study's questions, or an import",
    "study": "the study that it belongs to",
    "rows": "its rows over all tables, `tokens` included [row]",
    "left_out": "why it is not in this catalog; null if it is",
    "built": "when this catalog was built, ISO 8601 [UTC]",
}

_SQL_TYPE = {
    TEXT: "VARCHAR",
    INT: "BIGINT",
    FLOAT: "DOUBLE",
    BOOL: "BOOLEAN",
    INTS: "INTEGER[]",
    FLOATS: "FLOAT[]",
}


def open_catalog(path: Path, seconds: float = TIME_LIMIT) -> duckdb.DuckDBPyConnection:
    """Open the catalog read-only, with no file access and locked settings.

    A query ends after `seconds`. Use one `.cursor()` a thread. To see a catalog that was built
    anew, close this connection first: DuckDB shares one open database a path and process.
    Raises UserError when the catalog is missing or no database.
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
        "temp_directory": "",  # nothing is written, not even a spilled sort
        "max_execution_time": str(round(seconds * 1000)),
    }
    try:
        return duckdb.connect(path, read_only=True, config=limits)
    except duckdb.Error as error:
        raise UserError(
            f"{path}: cannot open the catalog: {str(error).splitlines()[0]}. "
            f"Build it again with `exgrpo catalog`."
        ) from error


def build(entries: list[Entry], left_out: dict[str, str], lake: Path, path: Path) -> pl.DataFrame:
    """Build the catalog at `path` from the lake's entries; return its `catalog_info`.

    `left_out` names the entries that do not count, each with the reason. The old catalog stays
    in place until the new one is whole.
    """
    taken = [entry for entry in entries if entry.entry not in left_out]
    info = pl.DataFrame(
        [
            {
                "entry": entry.entry,
                "study": entry.study,
                "rows": sum(file.rows for file in entry.tables.values()),
                "left_out": left_out.get(entry.entry),
            }
            for entry in entries
        ],
        schema=INFO_SCHEMA,
    ).with_columns(built=pl.lit(datetime.now(UTC).isoformat(timespec="seconds")))
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.stem + ".building" + path.suffix)
    wal = aside.with_name(aside.name + ".wal")
    for old in (aside, wal):
        old.unlink(missing_ok=True)
    try:
        _write(aside, taken, lake, info)
        aside.replace(path)
    except duckdb.Error as error:
        raise UserError(
            f"{path}: cannot build the catalog: {str(error).splitlines()[0]}. The old one is "
            f"untouched. Check the disk space and the files under {lake}, run again."
        ) from error
    finally:
        for rest in (aside, wal):
            rest.unlink(missing_ok=True)
    return info


def _write(path: Path, entries: list[Entry], lake: Path, info: pl.DataFrame) -> None:
    with duckdb.connect(path, config={"memory_limit": MEMORY, "threads": THREADS}) as connection:
        for table in TABLES.values():
            if table.name == TOKENS.name:
                continue
            columns = ", ".join(f'"{c.name}" {_SQL_TYPE[c.type]}' for c in table.columns)
            connection.execute(f"CREATE TABLE {table.name} ({columns})")
            files = [
                escape(str(lake / entry.tables[table.name].path))
                for entry in entries
                if table.name in entry.tables
            ]
            if files:
                connection.execute(_insert(table), {"files": files})
            _comment(connection, table.name, table.grain, _meanings(table))
        runs = pl.DataFrame(
            [entry.run for entry in entries if entry.run], schema=RUNS.polars_schema
        ).sort(RUNS.order)
        connection.register("run_rows", runs)
        connection.execute(f"INSERT INTO {RUNS.name} FROM run_rows")
        connection.register("info_rows", info)
        connection.execute(f"CREATE TABLE {INFO} AS FROM info_rows")
        _comment(connection, INFO, "an entry of the lake, taken or left out", INFO_MEANING)


def _insert(table: Table) -> str:
    columns = ", ".join(f'"{name}"' for name in table.names)
    source = f"SELECT {columns} FROM read_parquet($files)"
    if table.name in SHARED:
        key = ", ".join(SHARED[table.name])
        source = f"SELECT DISTINCT ON ({key}) {columns} FROM ({source}) ORDER BY ALL"
    return f"INSERT INTO {table.name} {source}"


def _meanings(table: Table) -> dict[str, str]:
    return {
        column.name: column.meaning + (f" [{column.unit}]" if column.unit else "")
        for column in table.columns
    }


def _comment(
    connection: duckdb.DuckDBPyConnection, table: str, grain: str, columns: dict[str, str]
) -> None:
    """Keep grain and meaning in the database itself, for any schema browser."""
    connection.execute(f"COMMENT ON TABLE {table} IS {_literal(grain)}")
    for name, meaning in columns.items():
        connection.execute(f'COMMENT ON COLUMN {table}."{name}" IS {_literal(meaning)}')


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
