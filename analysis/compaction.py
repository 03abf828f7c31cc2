"""Take one log into the lake: its parts become one sorted Parquet file a table.

DuckDB sorts and writes within `MEMORY` and spills to disk beyond it, so a log may be larger than
memory. What many questions would work out again (`exgrpo/tables/derived.py`) is worked out here.
"""

import json
import math
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from glob import escape
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa

from analysis.errors import UserError
from analysis.lake import Entry, LakeFile, footer, marker, put_in_place
from analysis.sql_types import cast, literal, quoted
from analysis.worker import open_worker
from exgrpo.tables import DERIVED, RUNS, TABLES, TOKENS, TRAJECTORIES
from exgrpo.tables.derived import VISITS
from exgrpo.tables.manifest import file_hash
from exgrpo.tables.schema import SCHEMA_VERSION, Table

MEMORY = "2GiB"  # the workflow compacts two logs side by side

MANY_ROWS_A_KEY = ("experience",)  # elsewhere the columns of `order` name a row
REWARDS = ("correct", "reward")  # their sums must be those of the log
DERIVED_SQL = Path(__file__).parent / "derived"

# To show one row its row group is unpacked: few rows where they are long.
GROUP_BYTES = 4 * 2**20  # before compression
FEWEST_ROWS, MOST_ROWS = 2048, 122_880  # DuckDB's least, and its default


def compact(
    entry: str,
    study: str,
    run: dict[str, Any] | None,
    parts: dict[str, list[Path]],
    lake: Path,
) -> Entry:
    """Write the parts of each table as one sorted file, then the entry that makes them count.

    `parts` holds the checked live parts, by table. Missing columns become null; a foreign column
    or another type is a UserError, and so is a file whose rows or rewards are not those of its
    parts. Until all is written an older entry of that name stays as it is.
    """
    if run is not None:
        _check_run(entry, run)
    with (
        _aside(lake, entry) as aside,
        open_worker(MEMORY, temp_directory=str(aside / "spill")) as connection,
    ):
        for name, paths in sorted(parts.items()):
            _compact_table(connection, TABLES[name], paths, aside)
        written = set(parts)
        for table in DERIVED:
            if table.name not in written and _sources(table) <= written:
                _derive(connection, table, aside)
                written.add(table.name)
        files = {name: _describe(name, entry, aside) for name in sorted(written)}
        return _put_in_place(Entry(entry, study, files, run), aside, lake)


def _put_in_place(entry: Entry, aside: Path, lake: Path) -> Entry:
    """Replace what the lake has of this entry; while its files are moved it does not count."""
    place = marker(lake, entry.entry)
    place.unlink(missing_ok=True)
    for name in TABLES:
        path = lake / f"{name}/{entry.entry}.parquet"
        if name in entry.tables:
            path.parent.mkdir(exist_ok=True)
            put_in_place(_file(aside, name), path)
        else:
            path.unlink(missing_ok=True)
    place.parent.mkdir(exist_ok=True)
    note = aside / "entry.json"
    note.write_text(json.dumps(asdict(entry), indent=1) + "\n")
    put_in_place(note, place)
    return entry


def _file(folder: Path, table: str) -> Path:
    return folder / f"{table}.parquet"


def _describe(name: str, entry: str, aside: Path) -> LakeFile:
    path = _file(aside, name)
    rows, size = footer(path, "").num_rows, path.stat().st_size
    return LakeFile(f"{name}/{entry}.parquet", rows, size, file_hash(path))


def _sources(table: Table) -> set[str]:
    return {TRAJECTORIES.name} if table is VISITS else {TRAJECTORIES.name, TOKENS.name}


@contextmanager
def _aside(lake: Path, entry: str) -> Iterator[Path]:
    """A folder of the lake to write the entry in; what a killed process left there is removed."""
    folder = lake / f".{entry}.making"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _compact_table(
    connection: duckdb.DuckDBPyConnection, table: Table, parts: list[Path], aside: Path
) -> None:
    rows = sum(_check_part(part, table) for part in parts)
    order = quoted(table.order)
    if table.name in MANY_ROWS_A_KEY:  # rows of one key stay as they were logged
        order += f", list_position({_list(map(str, parts))}, filename), file_row_number"
    source = _rows_of(table, parts)
    path = _file(aside, table.name)
    try:
        _write(connection, table, f"FROM ({source}) ORDER BY {order}", _rows_a_group(parts), path)
        _check_conserved(connection, table, source, rows, path, parts[0].parent)
    except (OSError, duckdb.Error) as error:
        raise UserError(
            f"{aside.parent / table.name}: cannot make a file from {len(parts)} parts in "
            f"{parts[0].parent}: {error}. Free disk space if it is full, run again."
        ) from error


def _derive(connection: duckdb.DuckDBPyConnection, table: Table, aside: Path) -> None:
    """Work out a derived table from the files that are there."""
    for name in _sources(table):
        source = literal(escape(str(_file(aside, name))))
        connection.execute(f"CREATE OR REPLACE VIEW {name} AS FROM read_parquet({source})")
    rows = (DERIVED_SQL / f"{table.name}.sql").read_text()
    try:
        source = f"FROM ({rows}) ORDER BY {quoted(table.order)}"
        _write(connection, table, source, MOST_ROWS, _file(aside, table.name))
    except (OSError, duckdb.Error) as error:
        raise UserError(
            f"{aside.parent / table.name}: cannot work it out: {error}. Free disk space if it is "
            f"full, run again."
        ) from error


def _write(
    connection: duckdb.DuckDBPyConnection, table: Table, source: str, group: int, path: Path
) -> None:
    connection.execute(
        f"COPY (SELECT {cast(table)} {source}) TO {literal(str(path))} (FORMAT parquet, "
        f"COMPRESSION zstd, ROW_GROUP_SIZE {group}, USE_TMP_FILE false, "
        f"KV_METADATA {{schema_version: '{SCHEMA_VERSION}'}})"
    )


def _rows_of(table: Table, parts: list[Path]) -> str:
    """SQL for the rows of the parts; a column that no part has is null, names are no patterns."""
    there = {name for part in parts for name in _columns(part)}
    missing = [f"NULL AS {quoted([name])}" for name in table.names if name not in there]
    files = _list(escape(str(part)) for part in parts)
    options = "union_by_name = true, filename = true, file_row_number = true"
    return f"SELECT {', '.join(['*', *missing])} FROM read_parquet({files}, {options})"


def _columns(part: Path) -> pl.Schema:
    return pl.scan_parquet(part, glob=False, hive_partitioning=False).collect_schema()


def _list(texts: Iterable[str]) -> str:
    return "[" + ", ".join(literal(text) for text in texts) + "]"


def _rows_a_group(parts: list[Path]) -> int:
    """How many rows make `GROUP_BYTES`, by what the parts hold before compression."""
    groups = [
        meta.row_group(index)
        for meta in (footer(part, "") for part in parts)
        for index in range(meta.num_row_groups)
    ]
    size = sum(group.total_byte_size for group in groups)
    rows = sum(group.num_rows for group in groups)
    return max(FEWEST_ROWS, min(MOST_ROWS, GROUP_BYTES * rows // max(size, 1)))


def _check_run(entry: str, run: dict[str, Any]) -> None:
    """Raise UserError when the row has an unknown column or a value of another type."""
    for name, value in run.items():
        try:
            pa.array([value], RUNS.arrow_schema.field(name).type)
        except (KeyError, pa.ArrowException, OverflowError) as error:
            raise UserError(
                f"entry {entry}: run.json: {name}: {value!r} does not fit the table runs "
                f"({error}). Known columns: {', '.join(RUNS.names)}."
            ) from error


def _check_part(path: Path, table: Table) -> int:
    """The part's number of rows; UserError when its columns are not the declared ones."""
    remedy = "Write it again with this version: remove its log folder and run the stage again."
    rows, schema = footer(path, remedy).num_rows, table.polars_schema
    for name, type_ in _columns(path).items():
        if name not in schema:
            raise UserError(
                f"{path}: table {table.name} has no column {name!r} "
                f"(known: {', '.join(table.names)}). {remedy}"
            )
        if type_ != schema[name]:
            raise UserError(
                f"{path}: column {name!r} is {type_}, table {table.name} declares "
                f"{schema[name]}. {remedy}"
            )
    return rows


def _check_conserved(
    connection: duckdb.DuckDBPyConnection,
    table: Table,
    source: str,
    rows: int,
    written: Path,
    log: Path,
) -> None:
    """Rows and rewards of the written file must be those of its parts, and no key twice."""
    rewards = [f"fsum({name}::DOUBLE)" for name in REWARDS if name in table.names]
    totals = f"SELECT {', '.join(['count(*)', *rewards])}"
    file = f"read_parquet({literal(escape(str(written)))})"
    before = connection.execute(f"{totals} FROM ({source})").fetchall()[0]
    after = connection.execute(f"{totals} FROM {file}").fetchall()[0]
    if before[0] != rows or not all(map(_same, before, after)):
        raise UserError(
            f"{written}: rows and rewards {after} differ from those of its parts {before}. "
            f"Do not change logs while they are compacted; run again."
        )
    if table.name in MANY_ROWS_A_KEY:
        return
    keys = quoted(table.order)
    repeated = f"SELECT {keys}, count(*) AS times FROM {file} GROUP BY ALL HAVING times > 1"
    found = connection.sql(f"FROM ({repeated}) ORDER BY ALL").pl()
    if found.height:
        extra = int(found["times"].sum()) - found.height
        example = found.drop("times").row(0, named=True)
        raise UserError(
            f"{log}: {extra} rows occur twice, for example {example}. "
            f"Remove this log folder and run the stage that wrote it again."
        )


def _same(before: float | None, after: float | None) -> bool:
    """Whether two sums of the same numbers, in another order, agree."""
    if before is None or after is None:
        return before is after
    return math.isclose(before, after, rel_tol=1e-9, abs_tol=1e-9)
