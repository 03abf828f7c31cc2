"""The lake: few sorted Parquet files, one a table and entry, made from the parts of a log.

Layout: `<table>/<entry>.parquet` and, written last, `entries/<entry>.json`. Readers trust the
entries, never a glob, so a half-written file is never taken for done.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import UserError
from exgrpo.tables import RUNS, TABLES, Table
from exgrpo.tables.manifest import file_hash

MANY_ROWS_A_KEY = ("experience",)  # elsewhere the columns of `order` name a row

ROW_GROUP = 8192  # rows; larger groups make a page of texts or one trajectory's tokens slow


@dataclass(frozen=True)
class LakeFile:
    """One table of one entry; `path` is relative to the lake (absolute where it lies elsewhere)."""

    path: str
    rows: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """What the lake holds of one run, one study's questions, or one import.

    `run` is its row of the table `runs`, or None for questions.
    """

    entry: str
    study: str
    tables: dict[str, LakeFile]
    run: dict[str, Any] | None


def compact(
    entry: str,
    study: str,
    run: dict[str, Any] | None,
    parts: dict[str, list[Path]],
    lake: Path,
) -> Entry:
    """Write the parts of each table as one sorted file, then the entry that makes them count.

    `parts` holds the checked live parts, by table. Missing columns become null; a foreign column
    or another type is a UserError, and so is a file whose rows or right answers are not those
    of its parts.
    """
    if run is not None:
        _check_run(entry, run)
    marker = _marker(lake, entry)
    marker.unlink(missing_ok=True)  # from here until the end the entry does not count
    tables = {
        name: _compact_table(TABLES[name], paths, lake, f"{name}/{entry}.parquet")
        for name, paths in sorted(parts.items())
    }
    done = Entry(entry, study, tables, run)
    marker.parent.mkdir(parents=True, exist_ok=True)
    aside = marker.with_suffix(".tmp")
    aside.write_text(json.dumps(asdict(done), indent=1) + "\n")
    _put_in_place(aside, marker)
    return done


def read_entries(lake: Path) -> list[Entry]:
    """Every entry of the lake, by name. Raises UserError on one that cannot be read."""
    return [_read_entry(path) for path in sorted((lake / "entries").glob("*.json"))]


def check_files(entries: Iterable[Entry], lake: Path) -> None:
    """Raise UserError when a file of these entries is missing, torn or not what was written."""
    for entry in entries:
        for file in entry.tables.values():
            path = lake / file.path
            remedy = _remedy(entry, lake)
            if not path.is_file():
                raise UserError(f"{path}: missing from the lake. {remedy}")
            if (rows := _footer(path, remedy).num_rows) != file.rows:
                raise UserError(f"{path}: holds {rows} rows instead of {file.rows}. {remedy}")
            if (digest := file_hash(path)) != file.sha256:
                raise UserError(
                    f"{path}: corrupt: its sha256 is {digest[:12]}, its entry says "
                    f"{file.sha256[:12]}. {remedy}"
                )


def _remedy(entry: Entry, lake: Path) -> str:
    if entry.entry.startswith("import-"):
        return "Make it again: import the file once more under the same name."
    return (
        f"Make it again: remove {_marker(lake, entry.entry)} and run "
        f"`exgrpo lake --study {entry.study} --entry {entry.entry}`."
    )


def _put_in_place(aside: Path, path: Path) -> None:
    """Rename a finished file after its bytes are on disk."""
    with aside.open("rb") as file:
        os.fsync(file.fileno())
    aside.replace(path)


def scan(paths: list[Path], table: Table) -> pl.LazyFrame:
    """Rows of Parquet files with exactly the declared columns and types; names are no patterns."""
    frame = pl.scan_parquet(
        paths,
        glob=False,
        hive_partitioning=False,
        schema=table.polars_schema,
        missing_columns="insert",
    )
    return frame.select(table.names)


def _marker(lake: Path, entry: str) -> Path:
    return lake / "entries" / f"{entry}.json"


def _read_entry(path: Path) -> Entry:
    try:
        value = json.loads(path.read_text())
        tables = {name: LakeFile(**file) for name, file in value.pop("tables").items()}
        return Entry(tables=tables, **value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: no valid entry of the lake: {error!r}. Remove it and make it again "
            f"with `exgrpo lake`."
        ) from error


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


def _compact_table(table: Table, parts: list[Path], lake: Path, name: str) -> LakeFile:
    rows = sum(_check_part(part, table) for part in parts)
    path = lake / name
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".tmp")
    try:
        scan(parts, table).sort(table.order, maintain_order=True).sink_parquet(
            aside, compression="zstd", row_group_size=ROW_GROUP
        )
        _check_conserved(table, parts, rows, aside)
        digest = file_hash(aside)
        _put_in_place(aside, path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UserError(
            f"{path}: cannot make it from {len(parts)} parts in {parts[0].parent}: {error}. "
            f"Free disk space if it is full, run again."
        ) from error
    finally:
        aside.unlink(missing_ok=True)
    return LakeFile(name, rows, digest)


def _check_part(path: Path, table: Table) -> int:
    """The part's number of rows; UserError when its columns are not the declared ones."""
    remedy = "Write it again with this version: remove its log folder and run the stage again."
    rows = _footer(path, remedy).num_rows
    for name, type_ in pl.read_parquet_schema(path).items():
        if name not in table.names:
            raise UserError(
                f"{path}: table {table.name} has no column {name!r} "
                f"(known: {', '.join(table.names)}). {remedy}"
            )
        if type_ != table.polars_schema[name]:
            raise UserError(
                f"{path}: column {name!r} is {type_}, table {table.name} declares "
                f"{table.polars_schema[name]}. {remedy}"
            )
    return rows


def _footer(path: Path, remedy: str) -> pq.FileMetaData:
    try:
        return pq.read_metadata(path)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: no readable Parquet file: {reason}. {remedy}") from error


def _check_conserved(table: Table, parts: list[Path], rows: int, written: Path) -> None:
    """Rows and right answers of the written file must be those of its parts, and no key twice."""

    def totals(paths: list[Path]) -> tuple[int, ...]:
        counts = [pl.len(), *(pl.col(n).sum() for n in ("correct",) if n in table.names)]
        return scan(paths, table).select(counts).collect().row(0)

    before, after = totals(parts), totals([written])
    if before != after or before[0] != rows:
        raise UserError(
            f"{written}: rows and right answers {after} differ from those of its parts {before}. "
            f"Do not change logs while they are compacted; run again."
        )
    if table.name in MANY_ROWS_A_KEY:
        return
    keys = scan([written], table).select(table.order).collect()
    if keys.n_unique() < rows:
        example = keys.filter(keys.is_duplicated()).row(0, named=True)
        raise UserError(
            f"{parts[0].parent}: {rows - keys.n_unique()} rows occur twice, for example {example}. "
            f"Remove this log folder and run the stage that wrote it again."
        )
