"""The command `exgrpo import`: a foreign log becomes a run `import-<name>` of lake and catalog.

Each question's responses in a step are one group, as in training: k right of K. What is right is
the recorded score of a trainer's log, or our grade where a file only has gold answers. What the
log does not know stays null.
"""

import hashlib
import json
import platform
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from analysis.catalog import open_catalog
from analysis.errors import UserError as AnalysisError
from analysis.lake import Entry
from exgrpo.errors import UserError
from exgrpo.settings import content_hash
from exgrpo.tables.manifest import file_hash
from pipeline.catalog import build_catalog
from pipeline.files import write_json
from pipeline.imports import unlocks
from pipeline.imports.facts import Facts, describe, gather
from pipeline.imports.formats import DEFAULTS, HISTORY, Options, check_options, find, is_history
from pipeline.imports.history import write_history
from pipeline.imports.log import check_golds, staged_rows, write_log
from pipeline.imports.rows import Source, Tally
from pipeline.imports.stage import stage
from pipeline.lake import IMPORTS, add_import
from pipeline.provenance import commit, now
from pipeline.terminal import printable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # a part of file names


def import_file(path: Path, name: str | None, results: Path, options: Options = DEFAULTS) -> None:
    """Import a file or folder as run `import-<name>` (its own name unless told).

    An import of that name is replaced. Raises UserError on a log that cannot be used; then nothing
    is changed.
    """
    _check_there(path)
    name = _name_of(path) if name is None else name
    if not _NAME.fullmatch(name):
        raise UserError(
            f"--name {name!r}: use letters, digits, dots, dashes and underscores, at most 200."
        )
    started, clock = now(), time.monotonic()
    source = None if is_history(path, options) else find(path, options)
    if source is None:
        check_options(path, HISTORY, options)
    _check_names(path, source.files if source else [])
    with _aside(results / "imports", name) as folder:
        run = f"import-{name}"
        if source:
            facts = write_import(source, options, folder, run)
        else:
            facts = write_history(path, options.rollouts, folder / "log", run)
        row = {
            **_run_row(name, path, source, options),
            "started": started,
            "finished": now(),
            "seconds": time.monotonic() - clock,
            "steps": facts.steps[0],
        }
        write_json(folder / "run.json", row)
        replaced = _replaced(results / "imports" / name, row["settings"])
        entry = _replace(results / "imports" / name, folder, lambda: add_import(name, results))
    said = describe(facts, name, source.format if source else HISTORY, options.least_right)
    print(printable(f"{said}{replaced}"))
    _build_catalog(results, run)
    with open_catalog(results / "workbench.duckdb") as connection:
        found = unlocks.contents(entry, results / "lake")
        print(unlocks.describe(found, unlocks.needs(connection, found)))


def write_import(source: Source, options: Options, folder: Path, run: str) -> Facts:
    """Read the log and write it as `folder/log`; what is staged meanwhile is removed."""
    tally, staged = Tally(), folder / "staged.parquet"
    stage(source, tally, options.least_right, bool(options.grade), staged)
    with staged_rows(staged) as connection:
        if source.kind:
            check_golds(connection, source.path)
        write_log(connection, folder / "log", run, source, version("math-verify"))
        facts = gather(connection, source.keys, tally)
    staged.unlink()
    return facts


def _build_catalog(results: Path, run: str) -> None:
    try:
        build_catalog(results, None)
    except (UserError, AnalysisError, OSError) as error:
        reason = str(error).rstrip(".")
        raise UserError(
            f"{run} is in the lake, but the catalog could not be built: {reason}. Mend that, then "
            f"`exgrpo catalog` builds it; nothing has to be imported again."
        ) from error


def _name_of(path: Path) -> str:
    """A name for the import from that of the path. UserError when no letter of it can be kept."""
    named = path.resolve().name if path.is_dir() else path.stem
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", named).strip("-._")
    if not name:
        raise UserError(
            f"{path}: the name of an import has letters a to z and digits, and this has none. "
            f"Give one with --name."
        )
    return name


def _check_there(path: Path) -> None:
    try:
        path.stat()
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}.") from error


def _check_names(path: Path, files: Sequence[Path]) -> None:
    """UserError on names that are no UTF-8: they become text of the lake."""
    for each in (path, *files):
        try:
            str(each).encode()
        except UnicodeEncodeError as error:
            raise UserError(f"{str(each)!r}: the name is no UTF-8. Rename it.") from error


def _replaced(folder: Path, settings: str) -> str:
    """A line when the import that will be replaced is of other content or options."""
    try:
        older = json.loads((folder / "run.json").read_text(encoding="utf-8"))["settings"]
    except (OSError, ValueError, KeyError):
        return ""
    other = json.loads(older)["file"]
    return "" if older == settings else f"\nreplaced another import of this name: {other}"


@contextmanager
def _aside(imports: Path, name: str) -> Iterator[Path]:
    """A folder to write in; after an error it is gone, and so are the ones made for it.

    UserError on one of the system, as on a full disk.
    """
    aside = imports / f".{name}.new"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        aside.mkdir(parents=True)
    except OSError as error:
        raise UserError(f"{aside}: cannot be made: {error.strerror}. See --results.") from error
    try:
        yield aside
    except BaseException as error:
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):  # those that this import made are empty again
            imports.rmdir()
            imports.parent.rmdir()
        if isinstance(error, OSError):
            raise UserError(
                f"{error.filename or aside}: cannot be read or written: "
                f"{error.strerror or error}. Nothing was imported: mend that and run it again."
            ) from error
        raise


def _replace(folder: Path, aside: Path, add: Callable[[], Entry]) -> Entry:
    """Put `aside` in the place of `folder` and take it in; the older log is back if that fails."""
    old = folder.with_name(f".{folder.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        folder.rename(old)
    aside.rename(folder)
    try:
        entry = add()
    except BaseException:
        folder.rename(aside)
        if old.exists():
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)
    return entry


def _run_row(name: str, path: Path, source: Source | None, options: Options) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "file": path.name,
        "sha256": _hash(path, source.files if source else [path]),
        "shape": source.format if source else HISTORY,
    }
    if source is None:
        facts["group_size"] = options.rollouts
    elif source.kind:
        facts["kind"] = source.kind
    else:
        facts["right"] = options.least_right
    if options.mapping:
        facts["mapping"] = options.mapping.read_text(encoding="utf-8")
    if options.reward:
        facts["reward"] = options.reward
    return {
        "run": f"import-{name}",
        "study": IMPORTS,
        "arm": name,
        "settings": json.dumps(facts),
        "settings_hash": content_hash(facts),
        "versions": json.dumps(
            {"python": platform.python_version(), "math-verify": version("math-verify")}
        ),
        "commit": commit(),
        "attempts": 1,
        "status": "imported",
    }


def _hash(path: Path, files: Sequence[Path]) -> str:
    """SHA-256 of a file's bytes; of several, of their names and hashes."""
    if list(files) == [path]:
        return file_hash(path)
    lines = (f"{file.relative_to(path)} {file_hash(file)}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
