"""An answer as a file for another program."""

from collections.abc import Callable
from io import BytesIO

import polars as pl

from analysis.queries import flat


def _csv(frame: pl.DataFrame) -> bytes:
    return flat(frame).write_csv().encode()


def _json(frame: pl.DataFrame) -> bytes:
    """One object a line."""
    return frame.write_ndjson().encode()


def _parquet(frame: pl.DataFrame) -> bytes:
    file = BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


EXPORTS: dict[str, tuple[str, str, Callable[[pl.DataFrame], bytes]]] = {
    "CSV": ("csv", "text/csv", _csv),
    "JSON": ("jsonl", "application/jsonl", _json),
    "Parquet": ("parquet", "application/vnd.apache.parquet", _parquet),
}
