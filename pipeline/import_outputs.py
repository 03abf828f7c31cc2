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

from analysis.lake import Entry
from exgrpo.errors import UserError
from exgrpo.settings import content_hash
from exgrpo.tables.manifest import file_hash
from pipeline import import_unlocks
from pipeline.catalog import build_catalog
from pipeline.files import write_json
from pipeline.import_facts import Facts, describe, gather
from pipeline.import_formats import DEFAULTS, HISTORY, Options, find, is_history
from pipeline.import_history import write_history
from pipeline.import_log import check_golds, staged_rows, write_log
from pipeline.import_rows import Source, Tally
from pipeline.import_stage import stage
from pipeline.lake import IMPORTS, add_import
from pipeline.provenance import commit, now

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def import_file(path: Path, name: str | None, results: Path, options: Options = DEFAULTS) -> None:
    """Import a file or folder as run `import-<name>` (its own name unless told).

    An import of that name is replaced. Raises UserError on a log that cannot be used; then nothing
    is changed.
    """
    named = path.resolve().name if path.is_dir() else path.stem
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "-", named).strip("-._")
    if not _NAME.fullmatch(name):
        raise UserError(f"--name {name!r}: use letters, digits, dots, dashes and underscores.")
    started, clock = now(), time.monotonic()
    source = None if is_history(path, options) else find(path, options)
    with _aside(results / "imports", name) as folder:
        run = f"import-{name}"
        if source:
            facts = write_import(source, options, folder, run)
        else:
            facts = write_history(path, options.group_size, folder / "log", run)
        row = {
            **_run_row(run, path, source, options),
            "started": started,
            "finished": now(),
            "seconds": time.monotonic() - clock,
            "steps": facts.steps[0],
        }
        write_json(folder / "run.json", row)
        entry = _replace(results / "imports" / name, folder, lambda: add_import(name, results))
    build_catalog(results, None)
    print(describe(facts, name, source.format if source else HISTORY, options.right))
    print(import_unlocks.describe(import_unlocks.contents(entry, results / "lake")))


def write_import(source: Source, options: Options, folder: Path, run: str) -> Facts:
    """Read the log and write it as `folder/log`; what is staged meanwhile is removed."""
    tally, staged = Tally(), folder / "staged.parquet"
    stage(source, tally, options.right, options.grade, staged)
    with staged_rows(staged) as connection:
        if source.kind:
            check_golds(connection, source.path)
        write_log(connection, folder / "log", run, source, version("math-verify"))
        facts = gather(connection, source.keys, tally)
    staged.unlink()
    return facts


@contextmanager
def _aside(imports: Path, name: str) -> Iterator[Path]:
    """A folder to write in; after an error it is gone, and so are the ones made for it."""
    aside = imports / f".{name}.new"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        with suppress(OSError):  # those that this import made are empty again
            imports.rmdir()
            imports.parent.rmdir()
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


def _run_row(run: str, path: Path, source: Source | None, options: Options) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "file": path.name,
        "sha256": _hash(path, source.files if source else [path]),
        "shape": source.format if source else HISTORY,
    }
    if source is None:
        facts["group_size"] = options.group_size
    elif source.kind:
        facts["kind"] = source.kind
    else:
        facts["right"] = options.right
    if options.mapping:
        facts["mapping"] = options.mapping.read_text(encoding="utf-8")
    if options.reward:
        facts["reward"] = options.reward
    return {
        "run": run,
        "study": IMPORTS,
        "arm": "import",
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
