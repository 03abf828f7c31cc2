"""The golden lake: a micro study and an import, committed under `golden/lake` (`make golden`).

`rows` reads its Parquet with polars, so that what a test expects never comes from the SQL it tests.
"""

from pathlib import Path
from typing import Any

from analysis.catalog_build import build
from analysis.lake import read_entries, scan
from exgrpo.tables import RUNS, TABLES

LAKE = Path(__file__).resolve().parent / "golden" / "lake"

Row = dict[str, Any]


def build_golden(path: Path) -> Path:
    """Build the catalog of the golden lake at `path`, with every entry in it."""
    build(read_entries(LAKE), {}, LAKE, path)
    return path


def rows(table: str, lake: Path = LAKE) -> list[Row]:
    """Every row of a table of the lake, entry after entry, in the order of the files.

    A question or a token that several entries hold comes several times, unlike in the catalog.
    """
    entries = read_entries(lake)
    if table == RUNS.name:
        return [dict.fromkeys(RUNS.names) | entry.run for entry in entries if entry.run]
    files = [lake / entry.tables[table].path for entry in entries if table in entry.tables]
    return [row for file in files for row in scan([file], TABLES[table]).collect().to_dicts()]
