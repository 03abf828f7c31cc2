"""What a running job has logged, read again only where something was added: logs and rollouts.

A page looks every few seconds at dozens of runs: what did not change is not read twice.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock

import polars as pl
from cachetools import LRUCache

from analysis.lake import scan
from analysis.live import PlannedRun, RunLog, RunStatus, read_log, run_status
from exgrpo.tables import QUESTIONS, TRAJECTORIES
from exgrpo.tables.manifest import LogError, Part, check_part, live_parts
from exgrpo.tables.schema import SCHEMA_VERSION

MOST_RUNS = 500  # whose logs are kept
MOST_PARTS = 8  # whose rollouts are kept: those that somebody looks at

Stamp = tuple[int, int, bool]

_lock = Lock()  # pages of several readers run in threads of one process; held for no reading
_logs: LRUCache[Path, tuple[Stamp, RunLog]] = LRUCache(MOST_RUNS)
_done: LRUCache[Path, tuple[RunLog, float, RunStatus]] = LRUCache(MOST_RUNS)


@dataclass(frozen=True)
class Group:
    """A logged group: all rollouts of one question at one step, by slot.

    rows: of table `trajectories`. text and gold are None where the question is not known.
    """

    step: int
    group: int
    question: str | None
    text: str | None
    gold: str | None
    rows: pl.DataFrame


def latest_log(folder: Path) -> RunLog:
    """`read_log`, kept until the run's manifest changes or the run is done; no problem is kept."""
    stamp = _stamp(folder)
    with _lock:
        known = _logs.get(folder)
    if known and known[0] == stamp:
        return known[1]
    log = read_log(folder)
    if stamp and not log.problem:
        with _lock:
            _logs[folder] = (stamp, log)
    return log


def latest_status(run: PlannedRun, log: RunLog, now: float | None = None) -> RunStatus:
    """`run_status`; of a run that is done only the age of its checkpoint is told anew."""
    now = time.time() if now is None else now
    with _lock:
        known = _done.get(run.folder)
    if known and known[0] is log:
        _, then, status = known
        age = status.checkpoint_age
        return replace(status, checkpoint_age=None if age is None else age + now - then)
    status = run_status(run, log, now)
    if status.state == "done":
        with _lock:
            _done[run.folder] = (log, now, status)
    return status


def groups_of(folder: Path, step: int | None = None) -> pl.DataFrame:
    """The groups of a logged step, the newest unless given: step, group, question, right, size.

    `right` of `size` are k of K as the bucket counts them: not all rollouts need count.
    No rows where the step is not logged, or the log cannot be read now.
    """
    return (
        _rollouts(folder, step)
        .group_by("step", "group", maintain_order=True)
        .agg(
            pl.col("question").first(),
            right=pl.col("group_successes").first(),
            size=pl.col("group_size").first(),
        )
        .sort("group")
    )


def group_of(folder: Path, step: int, group: int) -> Group | None:
    """One group with its question; None where it is not logged, or cannot be read now."""
    rows = _rollouts(folder, step).filter(pl.col("group") == group).sort("slot")
    if rows.is_empty():
        return None
    question = rows["question"][0]
    known = _question(folder.parent.parent / "questions" / "log", question)
    text, gold = known or (None, None)
    return Group(step, group, question, text, gold, rows)


def _stamp(folder: Path) -> Stamp | None:
    try:
        status = (folder / "log" / "manifest.jsonl").stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, (folder / "done.json").is_file()


def _rollouts(folder: Path, step: int | None) -> pl.DataFrame:
    """The trajectories of a step; of the newest that is logged if it is None."""
    nothing = pl.DataFrame(schema=TRAJECTORIES.polars_schema)
    log = folder / "log"
    try:
        parts = [part for part in _parts(log, TRAJECTORIES.name) if part.rows]
        if step is None:
            step = max((part.last_step for part in parts), default=0)
        found = [
            _rows(log, part, TRAJECTORIES.name).filter(pl.col("step") == step)
            for part in parts
            if part.first_step <= step <= part.last_step
        ]
    except (LogError, OSError, pl.exceptions.PolarsError):
        return nothing
    return pl.concat([nothing, *found])


def _question(log: Path, question: str | None) -> tuple[str | None, str | None] | None:
    """Text and gold answer of a question of the study; None where they are not there."""
    try:
        for part in _parts(log, QUESTIONS.name):
            found = _rows(log, part, QUESTIONS.name).filter(pl.col("question") == question)
            if found.height:
                return found["text"][0], found["gold"][0]
    except (LogError, OSError, pl.exceptions.PolarsError):
        pass
    return None


def _parts(log: Path, table: str) -> Iterator[Part]:
    for part in live_parts(log):
        if part.table == table and part.schema_version == SCHEMA_VERSION:
            yield part


@lru_cache(maxsize=MOST_PARTS)
def _rows(log: Path, part: Part, table: str) -> pl.DataFrame:
    """All rows of a part: it never changes, so that it is read and checked once."""
    declared = {QUESTIONS.name: QUESTIONS, TRAJECTORIES.name: TRAJECTORIES}[table]
    return scan([check_part(log, part)], declared).collect()
