"""What a run writes: Parquet parts and the manifest that lists them.

A part is written under a temporary name, synced, renamed, then listed in `manifest.jsonl`.
Readers trust the manifest, never a glob. Every start of a run opens an attempt; parts whose
steps lie past the checkpoint that a later attempt resumed from are dead and are never read.

Layout of a log folder::

    manifest.jsonl                       one JSON line an attempt or a part
    <table>/part-<attempt>-<first step>-<last step>.parquet
"""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError
from exgrpo.tables import TABLES
from exgrpo.tables.manifest import MANIFEST, Part, attempts, file_hash, live_parts
from exgrpo.tables.schema import FLOATS, INTS, TEXT, ColumnType, Table

FROM_THE_START = -1  # before step 0, which holds what is known of the base model


def sync(path: Path) -> None:
    """Force a file or folder to disk, so that a later rename cannot outlive its content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yields the name under which to write a file that is to be there whole or not at all.

    Afterwards it is synced and renamed. UserError where that or the writing fails.
    """
    aside = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield aside
        sync(aside)
        aside.replace(path)
        sync(path.parent)
    except BaseException as error:
        _forget(aside)
        if not isinstance(error, OSError):
            raise
        raise UserError(
            f"{path}: cannot write: {error.strerror}. Free disk space or mend the permissions, "
            f"then run again."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file whole or not at all: temporary name, sync, rename."""
    with whole_file(path) as aside:
        aside.write_bytes(content)


def _forget(aside: Path) -> None:
    """Remove what was left half written, where that can be done at all."""
    with contextlib.suppress(OSError):
        aside.unlink()


def require_logged(log: Path, step: int) -> None:
    """UserError unless the log holds each of the steps 1 .. `step` that a checkpoint has behind it.

    The log is always written first, so one that holds fewer has been removed or changed since.
    """
    parts = [part for part in live_parts(log) if part.table == "steps" and part.last_step <= step]
    if (logged := sum(part.rows for part in parts)) != step:
        raise UserError(
            f"{log}: holds {logged} of the {step} steps that the newest checkpoint has behind it. "
            f"Restore it from a backup or remove {log.parent} and train again."
        )


def _cannot_write(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path}: cannot write the log: {error.strerror or error}. Free disk space, mend the "
        f"permissions or bring back what was removed, then run again: training resumes from its "
        f"last checkpoint."
    )


def _frame(rows: Sequence[dict[str, Any]], table: Table) -> pa.Table:
    columns = [
        _column([row.get(column.name) for row in rows], column.type) for column in table.columns
    ]
    return pa.Table.from_arrays(
        [
            column.cast(field.type)
            for column, field in zip(columns, table.arrow_schema, strict=True)
        ],
        schema=table.arrow_schema,
    )


def _column(values: Sequence[Any], kind: ColumnType) -> pa.Array:
    """An Arrow column, by way of polars: pyarrow alone would import pandas, half a second.

    Lists of numbers are joined first: many times faster than one by one.
    """
    if kind not in (INTS, FLOATS):
        return pl.Series(values=values, dtype=kind).to_arrow()
    given = [() if value is None else value for value in values]
    offsets = pl.Series(np.cumsum([0, *map(len, given)]), dtype=pl.Int32)
    inner = pl.Int32 if kind == INTS else pl.Float32
    numbers = pl.Series(np.concatenate([np.empty(0, np.int8), *given])).cast(inner)
    missing = pl.Series([value is None for value in values], dtype=pl.Boolean)
    return pa.ListArray.from_arrays(
        *(each.to_arrow() for each in (offsets, numbers)), mask=missing.to_arrow()
    )


def _encodings(table: Table) -> dict[str, Any]:
    """Parquet encodings: a third of the time and two thirds of the size of pyarrow's defaults."""
    texts = [column.name for column in table.columns if column.type == TEXT]
    ids, floats = (
        [f"{column.name}.list.element" for column in table.columns if column.type == kind]
        for kind in (INTS, FLOATS)
    )
    return {"use_dictionary": texts + ids, "use_byte_stream_split": floats}


class Unrecorded:
    """In the place of a `Recorder` where another process of the run writes its log."""

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None: ...

    def flush(self, first_step: int, last_step: int) -> None: ...

    def take_seconds(self) -> float:
        return 0.0


class Recorder:
    """Collects the rows of a run and writes them as parts; one attempt of one log folder."""

    def __init__(self, log: Path, resumed_from: int = FROM_THE_START) -> None:
        """Open a new attempt that goes on after step `resumed_from`, or from the start."""
        self.log = log
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._seconds = 0.0
        try:
            log.mkdir(parents=True, exist_ok=True)
            (log / MANIFEST).touch()
            self._end_torn_line()
            self.attempt = 1 + attempts(log)
            self._append({"kind": "attempt", "attempt": self.attempt, "resumed_from": resumed_from})
        except OSError as error:
            raise _cannot_write(log, error) from error

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Keep rows for the next `flush`. A missing column is null; an unknown one is an error."""
        began = time.perf_counter()
        rows = list(rows)  # made now
        if unknown := set().union(*rows) - set(TABLES[table].names):
            raise ValueError(f"table {table} has no column {sorted(unknown)}")
        if rows:
            self._rows.setdefault(table, []).extend(rows)
        self._seconds += time.perf_counter() - began

    def flush(self, first_step: int, last_step: int) -> None:
        """Write all kept rows, which belong to steps `first_step` .. `last_step`, and list them."""
        began = time.perf_counter()
        for table, rows in self._rows.items():
            self._write(table, rows, first_step, last_step)
        self._rows = {}
        self._seconds += time.perf_counter() - began

    def take_seconds(self) -> float:
        """Wall time of `add`, with the making of its rows, and of `flush` since last asked [s]."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def adopt(self, table: str, file: Path, rows: int, first: int, last: int) -> None:
        """Take a Parquet file of `table` that lies beside the log as a part of steps first .. last.

        For rows that are too many to be kept here. It must have the declared types.
        """
        path = self._place(table, first, last)
        try:
            path.parent.mkdir(exist_ok=True)
            self._list(table, file, path, rows, first, last)
        except OSError as error:
            raise _cannot_write(path, error) from error

    def _write(self, table: str, rows: list[dict[str, Any]], first: int, last: int) -> None:
        path = self._place(table, first, last)
        aside = path.with_suffix(".tmp")
        frame = _frame(rows, TABLES[table])
        try:
            path.parent.mkdir(exist_ok=True)
            pq.write_table(frame, aside, compression="zstd", **_encodings(TABLES[table]))
            self._list(table, aside, path, len(rows), first, last)
        except OSError as error:
            _forget(aside)
            raise _cannot_write(path, error) from error

    def _place(self, table: str, first: int, last: int) -> Path:
        return self.log / table / f"part-{self.attempt}-{first}-{last}.parquet"

    def _list(self, table: str, file: Path, path: Path, rows: int, first: int, last: int) -> None:
        """Put a finished file in its place, then say in the manifest that it is there."""
        sync(file)
        name, size = str(path.relative_to(self.log)), file.stat().st_size
        part = Part(table, name, self.attempt, first, last, rows, size, file_hash(file))
        file.replace(path)
        sync(path.parent)
        self._append({"kind": "part", **asdict(part)})

    def _append(self, line: dict[str, Any]) -> None:
        # Never created here: a manifest that is gone took with it what it listed.
        with (self.log / MANIFEST).open("r+") as file:
            file.seek(0, os.SEEK_END)
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _end_torn_line(self) -> None:
        manifest = self.log / MANIFEST
        if (text := manifest.read_text()) and not text.endswith("\n"):
            write_whole(manifest, text[: text.rfind("\n") + 1].encode())
