"""What a run writes: Parquet parts and the manifest that lists them.

A part is written under a temporary name, synced, renamed, then listed in `manifest.jsonl`.
Readers trust the manifest, never a glob. Every start of a run opens an attempt; parts whose
steps lie past the checkpoint that a later attempt resumed from are dead and are never read.

Layout of a log folder::

    manifest.jsonl                       one JSON line an attempt or a part
    <table>/part-<attempt>-<first step>-<last step>.parquet
"""

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError
from exgrpo.tables import SCHEMA_VERSION, TABLES

MANIFEST = "manifest.jsonl"
FROM_THE_START = -1  # before step 0, which holds what is known of the base model


@dataclass(frozen=True)
class Part:
    """A listed file of one table: where it is, and what must be true of it."""

    table: str
    path: str
    attempt: int
    first_step: int
    last_step: int
    rows: int
    bytes: int
    sha256: str
    schema_version: int = SCHEMA_VERSION


def sync(path: Path) -> None:
    """Force a file or folder to disk, so that a later rename cannot outlive its content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all: temporary name, sync, rename."""
    aside = path.with_name(path.name + ".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_bytes(content)
        sync(aside)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise UserError(
            f"{path}: cannot write: {error.strerror}. Free disk space or mend the permissions, "
            f"then run again."
        ) from error
    sync(path.parent)


def _lines(log: Path) -> list[dict[str, Any]]:
    manifest = log / MANIFEST
    if not manifest.exists():
        return []
    lines = manifest.read_text().splitlines(keepends=True)
    try:
        # A torn last line is a write that a kill cut off: its part was never listed.
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except ValueError as error:
        raise UserError(
            f"{manifest}: a line is no JSON ({error}). Restore it from a backup or remove "
            f"{log.parent} and run the stage again."
        ) from error


def listed_parts(log: Path) -> list[Part]:
    """Every part that the manifest lists, in order, those of dead attempts too."""
    return [
        Part(**{key: value for key, value in line.items() if key != "kind"})
        for line in _lines(log)
        if line["kind"] == "part"
    ]


def live_parts(log: Path) -> list[Part]:
    """The parts that count: every listed part not overtaken by a later attempt.

    A part is dead when a later attempt resumed from a step before the part's last step.
    """
    attempts = [line for line in _lines(log) if line["kind"] == "attempt"]
    return [
        part
        for part in listed_parts(log)
        if all(
            part.last_step <= attempt["resumed_from"]
            for attempt in attempts
            if attempt["attempt"] > part.attempt
        )
    ]


def check_part(log: Path, part: Part) -> Path:
    """The path of a part after a check of its size; raises UserError when it is missing or torn."""
    path = log / part.path
    if not path.exists():
        raise UserError(
            f"{path}: listed in {log / MANIFEST} but missing. Restore it from a backup "
            f"or remove the run folder {log.parent} and train it again."
        )
    if path.stat().st_size != part.bytes or _sha256(path) != part.sha256:
        raise UserError(
            f"{path}: corrupt: its bytes differ from what {log / MANIFEST} recorded "
            f"({part.bytes} bytes, sha256 {part.sha256[:12]}). Restore it from a "
            f"backup or remove the run folder {log.parent} and train it again."
        )
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Recorder:
    """Collects the rows of a run and writes them as parts; one attempt of one log folder."""

    def __init__(self, log: Path, resumed_from: int = FROM_THE_START) -> None:
        """Open a new attempt that goes on after step `resumed_from`, or from the start."""
        self.log = log
        log.mkdir(parents=True, exist_ok=True)
        self._end_torn_line()
        self.attempt = 1 + sum(line["kind"] == "attempt" for line in _lines(log))
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._append({"kind": "attempt", "attempt": self.attempt, "resumed_from": resumed_from})

    def add(self, table: str, rows: Iterable[dict[str, Any]]) -> None:
        """Keep rows for the next `flush`. A missing column is null; an unknown one is an error."""
        known = set(TABLES[table].names)
        for row in rows:
            if unknown := row.keys() - known:
                raise ValueError(f"table {table} has no column {sorted(unknown)}")
            self._rows.setdefault(table, []).append(row)

    def flush(self, first_step: int, last_step: int) -> None:
        """Write all kept rows, which belong to steps `first_step` .. `last_step`, and list them."""
        for table, rows in self._rows.items():
            self._write(table, rows, first_step, last_step)
        self._rows = {}

    def _write(self, table: str, rows: list[dict[str, Any]], first: int, last: int) -> None:
        name = f"{table}/part-{self.attempt}-{first}-{last}.parquet"
        path = self.log / name
        aside = path.with_suffix(".tmp")
        frame = pa.Table.from_pylist(rows, schema=TABLES[table].arrow_schema)
        try:
            path.parent.mkdir(exist_ok=True)
            pq.write_table(frame, aside, compression="zstd")
            sync(aside)
            part = Part(
                table,
                name,
                self.attempt,
                first,
                last,
                len(rows),
                aside.stat().st_size,
                _sha256(aside),
            )
            aside.replace(path)
            sync(path.parent)
            self._append({"kind": "part", **asdict(part)})
        except OSError as error:
            aside.unlink(missing_ok=True)
            raise UserError(
                f"{path}: cannot write the log: {error.strerror}. Free disk space or mend the "
                f"permissions, then run again: training resumes from its last checkpoint."
            ) from error

    def _append(self, line: dict[str, Any]) -> None:
        with (self.log / MANIFEST).open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _end_torn_line(self) -> None:
        manifest = self.log / MANIFEST
        if manifest.exists() and (text := manifest.read_text()) and not text.endswith("\n"):
            write_whole(manifest, text[: text.rfind("\n") + 1].encode())
