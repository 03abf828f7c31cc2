"""The lake: few sorted Parquet files, one a table and entry, made from the parts of a log.

Layout: `<table>/<entry>.parquet` and, written last, `entries/<entry>.json`. Readers trust the
entries, never a glob, so a half-written file is never taken for done.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import UserError, reason
from analysis.storage import Lake, contents, entry_paths, locate, sizes
from exgrpo.tables import Table
from exgrpo.tables.manifest import file_hash

LAYOUT = 2  # with the derived tables


@dataclass(frozen=True)
class LakeFile:
    """One table of one entry; `path` is relative to the lake (absolute where it lies elsewhere)."""

    path: str
    rows: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Entry:
    """What the lake holds of one run, one study's questions, or one import.

    `run` is its row of the table `runs`, or None for questions. An entry of another `layout` was
    made by another version of the workbench: it is read without tables and run.
    """

    entry: str
    study: str
    tables: dict[str, LakeFile]
    run: dict[str, Any] | None
    layout: int = LAYOUT


def read_entries(lake: Lake) -> list[Entry]:
    """Every entry of the lake, by name. Raises UserError on one that cannot be read."""
    paths = entry_paths(lake)
    return [
        _read_entry(locate(lake, path), content)
        for path, content in zip(paths, contents(lake, paths), strict=True)
    ]


def read_entry(lake: Lake, name: str) -> Entry | None:
    """The entry of this name; None when the lake has none. Raises UserError."""
    path = f"entries/{name}.json"
    if not sizes(lake, [path]):
        return None
    return _read_entry(locate(lake, path), contents(lake, [path])[0])


def check_there(entries: Iterable[Entry], lake: Lake) -> None:
    """Raise UserError when a file of these entries is missing or has another size. Cheap."""
    for entry in entries:
        found = sizes(lake, (file.path for file in entry.tables.values()))
        for file in entry.tables.values():
            path = locate(lake, file.path)
            if file.path not in found:
                raise UserError(f"{path}: missing from the lake. {_remedy(entry, lake)}")
            if (size := found[file.path]) != file.bytes:
                raise UserError(
                    f"{path}: torn or changed: it has {size} bytes instead of {file.bytes}. "
                    f"{_remedy(entry, lake)}"
                )


def check_files(entries: Iterable[Entry], lake: Lake) -> None:
    """Raise UserError when a file of these entries is not, byte for byte, what was written.

    In a bucket only presence and size are checked: a hash would cost the download of all files.
    """
    entries = list(entries)
    check_there(entries, lake)
    if not isinstance(lake, Path):
        return
    for entry in entries:
        for file in entry.tables.values():
            path = lake / file.path
            if (digest := file_hash(path)) != file.sha256:
                raise UserError(
                    f"{path}: corrupt: its sha256 is {digest[:12]}, its entry says "
                    f"{file.sha256[:12]}. {_remedy(entry, lake)}"
                )


def _remedy(entry: Entry, lake: Lake) -> str:
    if not isinstance(lake, Path):
        return f"Copy {entry.entry} there again, its file in entries/ last (see docs/lake.md)."
    if entry.entry.startswith("import-"):
        return "Make it again: import the file once more under the same name."
    if entry.entry.startswith("judgements-"):
        return "Make it again: run the same `exgrpo judge` once more; it asks nothing twice."
    return (
        f"Make it again: remove {marker(lake, entry.entry)} and run "
        f"`exgrpo lake --study {entry.study} --entry {entry.entry}`."
    )


def put_in_place(aside: Path, path: Path) -> None:
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


def marker(lake: Path, entry: str) -> Path:
    """The file whose presence makes an entry count."""
    return lake / "entries" / f"{entry}.json"


def _read_entry(path: str, content: bytes) -> Entry:
    try:
        value = json.loads(content)
        if (layout := value.get("layout", 1)) != LAYOUT:
            return Entry(value["entry"], value["study"], {}, None, layout)
        tables = {name: LakeFile(**file) for name, file in value.pop("tables").items()}
        return Entry(tables=tables, **value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{path}: no valid entry of the lake: {error!r}. Remove it and make it again "
            f"with `exgrpo lake`."
        ) from error


def footer(path: Path, remedy: str) -> pq.FileMetaData:
    """What a Parquet file says of itself at its end; UserError when it is none."""
    try:
        with path.open("rb") as file:
            return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise UserError(f"{path}: no readable Parquet file: {reason(error)}. {remedy}") from error
