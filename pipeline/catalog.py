"""Stage: build the read-only catalog from every entry of the lake that still counts."""

import fcntl
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import ValidationError

from analysis.catalog_build import build
from analysis.lake import LAYOUT, Entry, read_entries
from analysis.storage import open_lake
from exgrpo.errors import UserError
from exgrpo.records import write_whole
from exgrpo.studies import Study
from pipeline.lake import judged_run


def build_catalog(results: Path, study: str | None = None, elsewhere: str | None = None) -> None:
    """Write `results/workbench.duckdb`, and `<study>/catalog.json` that says what is in it.

    Runs that their study no longer lists (its settings changed) are left out, and said so. Of a
    lake `elsewhere`, a folder or an address, every entry counts: its studies are not here.
    """
    with _only_builder(results):
        _build(results, study, elsewhere)


def _build(results: Path, study: str | None, elsewhere: str | None) -> None:
    lake = open_lake(elsewhere) if elsewhere else results / "lake"
    entries = read_entries(lake)
    if elsewhere and not entries:
        raise UserError(
            f"{elsewhere}: there is no lake: it has no entries/*.json. Name the folder that has "
            f"entries/ in it, or copy the entries there (see docs/lake.md)."
        )
    left_out = {
        entry.entry: reason
        for entry in entries
        if (reason := another_version(entry) if elsewhere else why_left_out(entry, results))
    }
    info = build(entries, left_out, lake, results / "workbench.duckdb")
    for name, reason in left_out.items():
        print(f"left out of the catalog: {name}: {reason}")
    if study:
        summary = json.dumps(info.drop("built").to_dicts(), indent=1) + "\n"
        write_whole(results / study / "catalog.json", summary.encode())


@contextmanager
def _only_builder(results: Path) -> Iterator[None]:
    """Wait for another builder of this catalog (a study and an import may end together)."""
    results.mkdir(parents=True, exist_ok=True)
    with (results / ".catalog.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def another_version(entry: Entry) -> str | None:
    """Why this version of the workbench cannot read an entry; None if it can."""
    if entry.layout == LAYOUT:
        return None
    return "another version of the workbench made it; `exgrpo reproduce` makes it again"


def why_left_out(entry: Entry, results: Path) -> str | None:
    """Why an entry does not count: its study is gone or no longer lists it; None if it counts."""
    if reason := another_version(entry):
        return reason
    name = judged_run(entry.entry) or entry.entry  # what is said of a run counts as the run does
    if name.startswith("import-"):
        return None
    path = results / entry.study / "study.json"
    if not path.is_file():
        return f"{path} is missing"
    try:
        study = Study.model_validate_json(path.read_text())
    except ValidationError:
        return f"{path} was written by another version of the workbench"
    listed = {*study.runs, study.base_run, f"questions-{study.name}"}
    return None if name in listed else f"{path} no longer lists it (its settings changed)"
