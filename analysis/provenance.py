"""Where numbers come from: the catalog and its lake, the files of a run, what an attempt lost."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import polars as pl

from analysis.catalog import lake_of
from analysis.lake import footer, read_entry
from analysis.storage import locate, open_lake
from exgrpo.tables.manifest import attempts, listed_parts, live_parts

SHORT = 12  # hex digits of a hash that are shown

# What decides a run besides its settings: columns of `runs`.
ORIGIN = ("world", "base_model", "tokenizer", "commit", "hardware")

FILES = {
    "table": pl.String,
    "rows": pl.Int64,
    "bytes": pl.Int64,
    "schema": pl.String,
    "sha256": pl.String,
    "path": pl.String,
}


@dataclass(frozen=True)
class CatalogFacts:
    """What the catalog holds of a study, or of everything.

    built: when, ISO 8601, UTC. rows: over all tables. fingerprint: of the content of its entries,
    so that two catalogs with the same one hold the same rows. left_out: entry and reason.
    """

    built: str
    entries: int
    rows: int
    fingerprint: str
    left_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Attempts:
    """How often a run was started, and what of its log a later attempt made anew."""

    started: int
    parts: int
    rows: int


def catalog_facts(connection: duckdb.DuckDBPyConnection, study: str) -> CatalogFacts | None:
    """What the catalog says of the study's entries; None when it has none."""
    with connection.cursor() as cursor:
        sql = "SELECT * FROM catalog_info WHERE study = $study ORDER BY entry"
        info = cursor.sql(sql, params={"study": study}).pl()
    if info.is_empty():
        return None
    taken = info.filter(pl.col("left_out").is_null())
    left_out = info.filter(pl.col("left_out").is_not_null()).select("entry", "left_out")
    content = "\n".join(taken["fingerprint"])
    return CatalogFacts(
        built=info["built"][0],
        entries=taken.height,
        rows=int(taken["rows"].sum()),
        fingerprint=sha256(content.encode()).hexdigest()[:SHORT],
        left_out=tuple(left_out.iter_rows()),
    )


def lake_files(connection: duckdb.DuckDBPyConnection, folder: Path, run: str) -> pl.DataFrame:
    """The files of a run in the lake, a row a table, with the schema version they were written in.

    folder: where the catalog lies. No rows when the lake has no entry of that name. The version of
    a file in a bucket is not looked up. Raises UserError on an entry that cannot be read.
    """
    lake = open_lake(lake_of(connection), folder)
    entry = read_entry(lake, run)
    if entry is None:
        return pl.DataFrame(schema=FILES)
    rows = [
        (
            table,
            file.rows,
            file.bytes,
            _schema_version(lake / file.path) if isinstance(lake, Path) else None,
            file.sha256[:SHORT],
            locate(lake, file.path),
        )
        for table, file in entry.tables.items()
    ]
    return pl.DataFrame(rows, schema=FILES, orient="row")


def attempts_of(results: Path, study: str, run: str) -> Attempts | None:
    """What the log of a run says of its attempts; None where its log is not there (any more).

    Raises UserError on a manifest that cannot be read.
    """
    log = results / study / "runs" / run / "log"
    named = all(Path(name).name == name for name in (study, run))  # no way out of the folder
    if not named or not (log / "manifest.jsonl").is_file():
        return None
    live = live_parts(log)
    dead = [part for part in listed_parts(log) if part not in live]
    return Attempts(attempts(log), len(dead), sum(part.rows for part in dead))


def judged_at(results: Path, study: str) -> str | None:
    """When the study's claims were judged last, ISO 8601, UTC; None when they were not."""
    try:
        written = (results / study / "analyses" / "claims.json").stat().st_mtime
    except OSError:
        return None
    return datetime.fromtimestamp(written, UTC).isoformat(timespec="seconds")


def origin(run: Mapping[str, Any]) -> dict[str, Any]:
    """What decides a run besides its settings: ORIGIN, and `versions.<library>`."""
    found = {name: run[name] for name in ORIGIN if run[name] is not None}
    try:
        versions = json.loads(run["versions"] or "{}")
    except ValueError:
        return found
    if isinstance(versions, dict):
        found |= {f"versions.{name}": version for name, version in versions.items()}
    return found


def _schema_version(path: Path) -> str | None:
    metadata = footer(path, "Make it again with `exgrpo lake`.").metadata or {}
    version: bytes | None = metadata.get(b"schema_version")
    return None if version is None else version.decode(errors="replace")
