"""Rows as a file for another program."""

from collections.abc import Callable
from io import BytesIO

import polars as pl

from analysis.queries import flat

SPREADSHEETS = (
    "A spreadsheet may take texts that begin with =, +, - or @ for formulas: "
    "import the columns as text."
)


def csv(frame: pl.DataFrame) -> bytes:
    """Texts as they are: what a spreadsheet makes of them, `SPREADSHEETS` warns of."""
    return flat(frame).write_csv().encode()


def json(frame: pl.DataFrame) -> bytes:
    """One object a line."""
    return frame.write_ndjson().encode()


def parquet(frame: pl.DataFrame) -> bytes:
    file = BytesIO()
    frame.write_parquet(file)
    return file.getvalue()


# Of each format: the ending of its files, its MIME type, what writes it.
EXPORTS: dict[str, tuple[str, str, Callable[[pl.DataFrame], bytes]]] = {
    "CSV": ("csv", "text/csv", csv),
    "JSON": ("jsonl", "application/jsonl", json),
    "Parquet": ("parquet", "application/vnd.apache.parquet", parquet),
}
