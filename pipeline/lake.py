"""Stage: put the log of one run, of a study's questions, or of an import into the lake."""

import json
from pathlib import Path
from typing import Any

from analysis.compaction import compact
from analysis.lake import LAYOUT, Entry, marker, read_entries, read_entry
from exgrpo.errors import UserError
from exgrpo.studies import Study
from exgrpo.tables import TRAJECTORIES
from exgrpo.tables.manifest import MANIFEST, Part, check_part, listed_parts, live_parts
from pipeline.files import evaluation_folder, require_done, run_folder, study_folder

IMPORTS = "imports"  # the study that all imports belong to
_JUDGEMENTS = "judgements"


def add_study_entry(study: Study, entry: str, results: Path) -> Entry:
    """Compact one entry of a study: a run, the base model's run, or `questions-<study>`.

    Raises UserError when the entry is not the study's, when a stage before is not done, or
    when a part of a log is missing or corrupt.
    """
    questions = f"questions-{study.name}"
    if entry == questions:
        return _add(entry, study.name, [study_folder(study, results) / "questions"], None, results)
    evaluation = evaluation_folder(study, entry, results)
    if entry == study.base_run:
        return _add(entry, study.name, [evaluation], evaluation / "run.json", results)
    if entry in study.runs:
        run = run_folder(study, entry, results)
        return _add(entry, study.name, [run, evaluation], run / "run.json", results)
    known = ", ".join([*study.runs, study.base_run, questions])
    raise UserError(f"study {study.name!r} has no entry {entry!r}. Known: {known}.")


def add_import(name: str, results: Path) -> Entry:
    """Compact the log of `results/imports/<name>` as the entry `import-<name>`."""
    folder = results / "imports" / name
    return _compact(f"import-{name}", IMPORTS, [folder], folder / "run.json", results)


def judgement_folder(judge: str, run: str, results: Path) -> Path:
    return results / _JUDGEMENTS / judge / run


def judgements_entry(judge: str, run: str) -> str:
    return f"{_JUDGEMENTS}-{judge}-{run}"


def judged_run(entry: str) -> str | None:
    """The run that an entry holds judgements of; None when it is another entry."""
    kind, _, rest = entry.partition("-")
    return rest.partition("-")[2] if kind == _JUDGEMENTS else None


def add_judgements(judge: str, run: str, study: str, results: Path) -> Entry:
    """Compact what a judge says of one run as the entry `judgements-<judge>-<run>`."""
    folder = judgement_folder(judge, run, results)
    return _compact(judgements_entry(judge, run), study, [folder], None, results)


def renew(results: Path) -> None:
    """Make way for entries that another version of the workbench made: their logs are still there.

    Imports are compacted again here; those of a study by the workflow, which finds them missing;
    judgements by `exgrpo judge`, which asks nothing twice.
    """
    for entry in read_entries(results / "lake"):
        if entry.layout == LAYOUT:
            continue
        if entry.entry.startswith("import-"):
            add_import(entry.entry.removeprefix("import-"), results)
        else:
            marker(results / "lake", entry.entry).unlink(missing_ok=True)


def _add(
    entry: str, study: str, folders: list[Path], run_file: Path | None, results: Path
) -> Entry:
    """Compact the logs in `folders`, each of which must carry the marker of a finished stage."""
    for folder in folders:
        require_done(folder)
    return _compact(entry, study, folders, run_file, results)


def _compact(
    entry: str, study: str, folders: list[Path], run_file: Path | None, results: Path
) -> Entry:
    parts: dict[str, list[Path]] = {}
    for log in (folder / "log" for folder in folders):
        live = live_parts(log)
        if not live:
            raise UserError(
                f"{log / MANIFEST}: lists no part. Remove {log.parent} and run the stage that "
                f"wrote it again."
            )
        for part in live:
            parts.setdefault(part.table, []).append(check_part(log, part))
        _say_what_is_left_out(entry, log, live)
    run = _run_row(run_file) if run_file else None
    before = read_entry(results / "lake", entry)
    made = compact(entry, study, run, parts, results / "lake")
    if before is None or before.tables.get(TRAJECTORIES.name) != made.tables.get(TRAJECTORIES.name):
        _drop_judgements(entry, results / "lake")
    return made


def _drop_judgements(run: str, lake: Path) -> None:
    """Take back what was said of the trajectories that a run had before: their ids are the same."""
    for place in sorted((lake / "entries").glob(f"{_JUDGEMENTS}-*.json")):
        if judged_run(place.stem) == run:
            place.unlink(missing_ok=True)
            print(f"{run}: its trajectories are new, so {place.stem} is dropped: `exgrpo judge`")


def _run_row(path: Path) -> dict[str, Any]:
    """The row of table `runs` that a finished stage wrote. Raises UserError."""
    try:
        row = json.loads(path.read_text())
        if not isinstance(row, dict):
            raise ValueError(f"expected an object, found {type(row).__name__}")
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read: {error}. Restore it from a backup, or remove {path.parent} "
            f"and run the stage that wrote it again."
        ) from error
    return row


def _say_what_is_left_out(entry: str, log: Path, live: list[Part]) -> None:
    listed = listed_parts(log)
    if dead := [part for part in listed if part not in live]:
        rows = sum(part.rows for part in dead)
        print(f"{entry}: left out {len(dead)} parts ({rows:,} rows) of attempts cut short")
    known = {log / part.path for part in listed} | {log / MANIFEST}
    if torn := [path for path in log.rglob("*") if path.is_file() and path not in known]:
        print(
            f"{entry}: left out {len(torn)} files that {log / MANIFEST} does not list, as a kill "
            f"leaves them while they are written, for example {torn[0].relative_to(log)}"
        )
