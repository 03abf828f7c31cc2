"""The manifest of a log folder: which parts are there, and which of them count.

Readers trust it, never a glob. It is written by `exgrpo.records`; reading needs nothing but this.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exgrpo.errors import UserError
from exgrpo.tables.schema import SCHEMA_VERSION

MANIFEST = "manifest.jsonl"


class LogError(UserError):
    """A log that cannot be read: the message names the file and the remedy."""


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


def manifest_lines(log: Path) -> list[dict[str, Any]]:
    """Every whole line, in order: attempts and parts. Raises LogError where one is no JSON."""
    manifest = log / MANIFEST
    if not manifest.exists():
        return []
    lines = manifest.read_text().splitlines(keepends=True)
    try:
        # A torn last line is a write that a kill cut off: its part was never listed.
        return [json.loads(line) for line in lines if line.endswith("\n")]
    except ValueError as error:
        raise LogError(
            f"{manifest}: a line is no JSON ({error}). Restore it from a backup or remove "
            f"{log.parent} and run the stage again."
        ) from error


def listed_parts(log: Path) -> list[Part]:
    """Every part that the manifest lists, in order, those of dead attempts too."""
    return [
        Part(**{key: value for key, value in line.items() if key != "kind"})
        for line in manifest_lines(log)
        if line["kind"] == "part"
    ]


def attempts(log: Path) -> int:
    """How often the run was started."""
    return sum(line["kind"] == "attempt" for line in manifest_lines(log))


def live_parts(log: Path) -> list[Part]:
    """The parts that count: every listed part not overtaken by a later attempt.

    A part is dead when a later attempt resumed from a step before the part's last step.
    """
    starts = [line for line in manifest_lines(log) if line["kind"] == "attempt"]
    return [
        part
        for part in listed_parts(log)
        if all(
            part.last_step <= attempt["resumed_from"]
            for attempt in starts
            if attempt["attempt"] > part.attempt
        )
    ]


def check_part(log: Path, part: Part) -> Path:
    """The path of a part after a check of its size; raises LogError when it is missing or torn."""
    path = log / part.path
    if not path.exists():
        raise LogError(
            f"{path}: listed in {log / MANIFEST} but missing. Restore it from a backup "
            f"or remove the run folder {log.parent} and train it again."
        )
    if path.stat().st_size != part.bytes or file_hash(path) != part.sha256:
        raise LogError(
            f"{path}: corrupt: its bytes differ from what {log / MANIFEST} recorded "
            f"({part.bytes} bytes, sha256 {part.sha256[:12]}). Restore it from a "
            f"backup or remove the run folder {log.parent} and train it again."
        )
    return path


def file_hash(path: Path) -> str:
    """SHA-256 of a file's bytes, in hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
