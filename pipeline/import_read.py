"""Rows of a JSONL or Parquet file, one after the other: the file may be larger than memory."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError

Row = dict[str, Any]
Note = Callable[[str], None]

PARQUET_BATCH = 256  # rows; responses are long


def read_rows(file: Path, label: str, reject: Note, leave_out: Note) -> Iterator[tuple[str, Row]]:
    """Place and content of every row. `label` begins the name of a place.

    A line that is no JSON object is rejected, but for a last one without its newline, which a
    crash cut off: it is left out. UserError on a file that cannot be read at all.
    """
    try:
        if file.suffix == ".parquet":
            yield from _parquet(file, label)
        else:
            yield from _json_lines(file, label, reject, leave_out)
    except (OSError, pa.ArrowException) as error:
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise UserError(
            f"{file}: cannot be read: {reason}. Give a JSONL (UTF-8) or Parquet file."
        ) from error


def first_row(file: Path) -> Row:
    """The first row of a file, by which its format is known; {} if no line of it can be read."""
    return next((row for _, row in read_rows(file, "", _ignore, _ignore)), {})


def _ignore(note: str) -> None:
    """The same is said when the file is read in earnest."""


def _parquet(file: Path, label: str) -> Iterator[tuple[str, Row]]:
    number = 0
    with file.open("rb") as handle, pq.ParquetFile(handle) as parquet:
        for batch in parquet.iter_batches(PARQUET_BATCH):
            for row in batch.to_pylist():
                yield f"{label}row {number}", row
                number += 1


def _json_lines(file: Path, label: str, reject: Note, leave_out: Note) -> Iterator[tuple[str, Row]]:
    with file.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            where = f"{label}line {number}"
            row, reason = _object(line)
            if row is not None:
                yield where, row
            elif line.endswith(b"\n"):
                reject(f"{where}: {reason}: {_short(line)}. Mend or remove it.")
            else:
                leave_out(f"{where}: torn, the file ends inside it: {_short(line)}")


def _object(line: bytes) -> tuple[Row | None, str]:
    """The JSON object of a line, or None and what is wrong."""
    try:
        row = json.loads(line, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        reason = str(error) if "twice" in str(error) else "no JSON object"
        return None, reason
    return (row, "") if isinstance(row, dict) else (None, "no JSON object")


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} stands twice in one object")
    return row


def _short(line: bytes) -> str:
    return repr(line.decode("utf-8", errors="replace").rstrip("\n")[:60])
