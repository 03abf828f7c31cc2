"""Rows of a JSONL, JSON, Parquet or CSV file, as they are written: no type is guessed.

JSONL and Parquet are read row after row: the file may be larger than memory.
"""

import csv
import json
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError

Row = dict[str, Any]
Note = Callable[[str], None]

PARQUET_BATCH = 256  # rows; responses are long
NO_OBJECT = "no JSON object"
_HALF = re.compile("[\ud800-\udfff]")  # of a pair of surrogates: no text that UTF-8 can hold
_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


class Number(str):
    """A number, as the text that it is written with."""

    __slots__ = ()


class _UnfitError(ValueError):
    """JSON that says what no row can hold."""


def read_rows(
    file: Path, label: str, reject: Note, leave_out: Note, numbers_as_text: bool = False
) -> Iterator[tuple[str, Row]]:
    """Place and content of every row. `label` begins the name of a place.

    A line that is no JSON object is rejected, but for a last one without its newline, which a
    crash cut off: it is left out. numbers_as_text: a number in JSON comes as the text that it is
    written with, `142.0` or one of a thousand digits; one in Parquet as the shortest text that is
    this number and no other of its type. UserError on a file that cannot be read at all.
    """
    suffix = file.suffix.lower()
    try:
        if suffix == ".parquet":
            yield from _parquet(file, label, numbers_as_text)
        elif suffix == ".csv":
            yield from _csv(file, label, reject)
        elif suffix == ".json" and _is_array(file):
            yield from _json_array(file, label, reject, numbers_as_text)
        else:
            yield from _json_lines(file, label, reject, leave_out, numbers_as_text)
    except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException) as error:
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise UserError(
            f"{file}: cannot be read: {reason}. Give a JSONL, JSON or CSV (UTF-8) or Parquet file."
        ) from error


def first_row(file: Path, note: Note) -> Row:
    """The first row of a file, by which its format is known; {} if no line of it can be read."""
    return next((row for _, row in read_rows(file, "", note, note)), {})


def natural(file: Path) -> list[tuple[str, int]]:
    """A key for sorting by the numbers in the names: step_2 before step_10."""
    parts = re.findall("([^0-9]*)([0-9]*)", str(file))
    return [(text, int(number or -1)) for text, number in parts]


def _parquet(file: Path, label: str, numbers_as_text: bool) -> Iterator[tuple[str, Row]]:
    number = 0
    with file.open("rb") as handle, pq.ParquetFile(handle) as parquet:
        names = parquet.schema_arrow.names
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"{file}: two columns have the name {twice[0]!r}. Rename one.")
        for batch in parquet.iter_batches(PARQUET_BATCH):
            for row in _python(batch, file, number):
                if numbers_as_text:
                    row = {each.name: _written(row[each.name], each.type) for each in batch.schema}
                yield f"{label}row {number}", row
                number += 1


def _python(batch: pa.RecordBatch, file: Path, first: int) -> list[Row]:
    try:
        return batch.to_pylist()
    except (ValueError, OverflowError) as error:
        raise UserError(
            f"{file}: rows {first} to {first + batch.num_rows - 1}: a value cannot be read: "
            f"{error}. Remove its column, or write it as text."
        ) from error


def _written(value: Any, kind: pa.DataType) -> Any:
    """The value with its numbers as text; NaN and infinity, which no text is right for, stay."""
    types = pa.types
    if value is None:
        return None
    if types.is_struct(kind):
        return {each.name: _written(value[each.name], each.type) for each in kind}
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return [_written(each, kind.value_type) for each in value]
    if types.is_floating(kind) and math.isfinite(value):
        return Number(np.format_float_positional(kind.to_pandas_dtype()(value), trim="0"))
    if types.is_decimal(kind):
        return Number(format(value, "f"))
    return Number(value) if types.is_integer(kind) else value


def _csv(file: Path, label: str, reject: Note) -> Iterator[tuple[str, Row]]:
    with file.open(encoding="utf-8-sig", newline="") as handle:
        reader = csv.reader(handle, strict=True)
        names = next(reader, [])
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise UserError(f"{file}: two columns have the name {twice[0]!r}. Rename one.")
        for number, values in enumerate(reader):
            where = f"{label}row {number}"
            if len(values) == len(names):
                yield where, dict(zip(names, values, strict=True))
            elif values:
                reject(
                    f"{where}: {len(values)} values for {len(names)} columns. Mend or remove it."
                )


def _is_array(file: Path) -> bool:
    with file.open("rb") as handle:
        return handle.read(4096).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"["


def _json_array(
    file: Path, label: str, reject: Note, numbers_as_text: bool
) -> Iterator[tuple[str, Row]]:
    try:
        items = _parse(file.read_text(encoding="utf-8-sig"), numbers_as_text)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{file}: no valid JSON: {str(error).splitlines()[0]}. Mend the place named, or write "
            f"one object a line."
        ) from error
    for number, row in enumerate(items):
        where = f"{label}row {number}"
        if isinstance(row, dict):
            yield where, row
        else:
            reject(f"{where}: {NO_OBJECT}: {_short(str(row).encode())}. Mend or remove it.")


def _json_lines(
    file: Path, label: str, reject: Note, leave_out: Note, numbers_as_text: bool
) -> Iterator[tuple[str, Row]]:
    with file.open("rb") as handle:
        for number, line in enumerate(handle, start=1):
            if not line.strip():
                continue
            where = f"{label}line {number}"
            row, reason, cut = json_object(line, numbers_as_text)
            if row is not None:
                yield where, row
            elif line.endswith(b"\n") or not cut:
                reject(f"{where}: {reason}: {_short(line)}. Mend or remove it.")
            else:
                leave_out(f"{where}: torn, the file ends inside it: {_short(line)}")


def json_object(line: bytes, numbers_as_text: bool = False) -> tuple[Row | None, str, bool]:
    """The JSON object of a line; or None, what is wrong, and whether its end may be cut off."""
    try:
        row = _parse(line.decode("utf-8-sig"), numbers_as_text)
    except _UnfitError as error:
        return None, str(error), False
    except json.JSONDecodeError as error:
        return None, NO_OBJECT, error.msg != "Extra data"
    except UnicodeDecodeError:
        return None, "no UTF-8 text", True
    except (ValueError, RecursionError):  # a number of thousands of digits, or too deep
        return None, NO_OBJECT, False
    return (row, "", False) if isinstance(row, dict) else (None, NO_OBJECT, False)


def _parse(text: str, numbers_as_text: bool) -> Any:
    number: Any = Number if numbers_as_text else None  # None: as json does by itself
    value = json.loads(
        text,
        object_pairs_hook=_unique,
        parse_float=number,
        parse_int=number,
        parse_constant=number,
    )
    if _ESCAPED.search(text) and _HALF.search(json.dumps(value, ensure_ascii=False)):
        raise _UnfitError("text with half a surrogate pair, which is no Unicode")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> Row:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _UnfitError(f"key {twice!r} stands twice in one object")
    return row


def _short(line: bytes) -> str:
    return repr(line.decode("utf-8", errors="replace").rstrip("\n")[:60])
