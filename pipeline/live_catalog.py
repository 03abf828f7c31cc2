"""A catalog of this moment: the lake, and the logs of runs that are not in it yet.

The live parts of a log are put into a lake of their own in a temporary folder, by the same code and
with the same checks as they will be when the run is done. Nothing is written beside a run.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import polars as pl
from pydantic import ValidationError

from analysis import catalog
from analysis.catalog_build import build
from analysis.compaction import compact
from analysis.errors import UserError as AnalysisError
from analysis.lake import LAYOUT, Entry, read_entries
from exgrpo.errors import UserError
from exgrpo.studies import Study
from exgrpo.tables import TOKENS
from exgrpo.tables.manifest import check_part, live_parts
from exgrpo.tables.schema import SCHEMA_VERSION
from pipeline.catalog import why_left_out
from pipeline.files import evaluation_folder, run_folder, study_folder
from pipeline.terminal import printable

LOOKS = 3  # at a log that changes while it is read
# How a log fails that is damaged, or that is being changed between the check of a part and its use.
UNREADABLE = (UserError, AnalysisError, OSError, pl.exceptions.PolarsError)


@dataclass(frozen=True)
class Source:
    """An entry that the lake will have one day, and the folders whose logs make it."""

    entry: str
    study: str
    folders: list[Path]


@contextmanager
def live_catalog(
    results: Path, seconds: float = catalog.TIME_LIMIT
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The catalog of this moment, opened like the real one; it is removed at the end.

    Says on standard error what was live, and what was left out and why. Raises UserError when
    there is neither a lake nor a log.
    """
    with TemporaryDirectory(prefix="exgrpo-live-") as folder:
        path = Path(folder) / "workbench.duckdb"
        _build(results, Path(folder) / "lake", path)
        with catalog.open_catalog(path, seconds) as connection:
            yield connection


def _build(results: Path, live_lake: Path, path: Path) -> None:
    lake = results / "lake"
    entries = read_entries(lake)  # first: what goes into the lake from here on is still a log
    left_out = {each.entry: reason for each in entries if (reason := why_left_out(each, results))}
    in_lake = {each.entry for each in entries if each.layout == LAYOUT}
    live = []
    for source in _sources(results):
        if source.entry in in_lake:
            continue
        try:
            entry = _live_entry(source, live_lake)
        except UNREADABLE as error:
            left_out[source.entry] = " ".join(str(error).split())
            entry = Entry(source.entry, source.study, {}, None)
            _say(f"left out: {source.entry}: {left_out[source.entry]}")
        if entry is not None:
            entries.append(entry)
            live += [] if source.entry in left_out else [source.entry]
    if not entries:
        raise UserError(
            f"{results}: there is neither a lake nor a log of a run. Train one with "
            f"`exgrpo reproduce`, or name another folder with --results."
        )
    _say(f"live: {', '.join(live) or 'nothing, all that was logged is in the lake'}")
    build(entries, left_out, lake, path, old=results / path.name)


def _sources(results: Path) -> Iterator[Source]:
    """Questions, base model and runs of every study, as `pipeline.lake` makes entries of them."""
    for path in sorted(results.glob("*/study.json")):
        try:
            study = Study.model_validate_json(path.read_text())
        except (OSError, ValidationError):
            _say(f"left out: {path.parent}: another version of the workbench wrote {path.name}")
            continue
        questions, base = f"questions-{study.name}", study.base_run
        yield Source(questions, study.name, [study_folder(study, results) / "questions"])
        yield Source(base, study.name, [evaluation_folder(study, base, results)])
        for run in study.runs:
            folders = [run_folder(study, run, results), evaluation_folder(study, run, results)]
            yield Source(run, study.name, folders)


def _live_entry(source: Source, lake: Path) -> Entry | None:
    """What has been logged so far, without tokens, as an entry; None if nothing has.

    A log changes while it is read: a part may be overtaken by a new attempt, or a folder removed.
    Then it is looked at anew. Raises one of UNREADABLE when it is still damaged at the last look.
    """
    for look in range(1, LOOKS + 1):
        try:
            parts = _parts(source)
            if not parts:
                return None
            entry = compact(source.entry, source.study, _run_row(source), parts, lake)
        except UNREADABLE:
            if look == LOOKS:
                raise
        else:
            break
    files = {name: replace(file, path=str(lake / file.path)) for name, file in entry.tables.items()}
    return replace(entry, tables=files)


def _parts(source: Source) -> dict[str, list[Path]]:
    """The checked live parts of this schema version, by table; says how many are of another."""
    parts: dict[str, list[Path]] = {}
    foreign = []
    for log in (folder / "log" for folder in source.folders):
        for part in live_parts(log):
            if part.schema_version != SCHEMA_VERSION:
                foreign.append(part.schema_version)
            elif part.table != TOKENS.name:
                parts.setdefault(part.table, []).append(check_part(log, part))
    if foreign:
        _say(
            f"left out: {source.entry}: {len(foreign)} parts of schema version "
            f"{', '.join(map(str, sorted(set(foreign))))}; this workbench reads {SCHEMA_VERSION}"
        )
    return parts


def _run_row(source: Source) -> dict[str, Any] | None:
    """The row of table `runs`, from the first folder that has one; questions have none.

    A run that stopped by itself keeps its reason there, too, which is no column.
    """
    for folder in source.folders:
        if (path := folder / "run.json").is_file():
            row: dict[str, Any] = json.loads(path.read_text())
            row.pop("reason", None)
            return row
    return None


def _say(line: str) -> None:
    print(printable(line), file=sys.stderr)
