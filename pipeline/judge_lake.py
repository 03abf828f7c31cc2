"""Where judgements go: a log for each judge and run, and from there the lake.

They are for the trajectories of `<results>/lake` as they are now, for ids alone would also fit
others; and one process at a time writes those of a judge.
"""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from analysis.catalog import lake_of
from analysis.catalog_build import fingerprint
from analysis.lake import read_entry
from exgrpo.errors import UserError
from exgrpo.judges.judge import Case, Judge
from exgrpo.judges.verdicts import Verdicts, key_of
from exgrpo.records import Recorder
from pipeline.lake import add_judgements, judgement_folder, judgements_entry


@dataclass(frozen=True)
class Written:
    """trajectories: judged ones of a run that are now in the lake. answers: distinct ones."""

    trajectories: int
    answers: int


@contextmanager
def only_judge(judge: str, results: Path) -> Iterator[None]:
    """Hold the lock of a judge's logs. UserError when another has it, or none can be written."""
    folder = judgement_folder(judge, "", results)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise UserError(
            f"{folder}: no folder to write judgements in: {error.strerror}. Allow writing there, "
            f"or move away what lies in its place."
        ) from error
    with file as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UserError(
                f"{folder}: another `exgrpo judge --judge {judge}` is at work on these results. "
                f"Wait for it or end it, then run this again."
            ) from error
        yield


def check_current(connection: duckdb.DuckDBPyConnection, run: str, results: Path) -> None:
    """UserError unless the lake beside the catalog holds the run, and as the catalog has it."""
    held = read_entry(results / "lake", run)
    if held is None:
        source = lake_of(connection)
        source = source if "://" in source else str(results / source)
        raise UserError(
            f"{run}: is not in {results / 'lake'}, where its judgements would go: the catalog was "
            f"built from {source}. Judge in the results folder of that lake, or copy the entry "
            f"(docs/lake.md) and run `exgrpo catalog`."
        )
    found = connection.execute(
        "SELECT fingerprint FROM catalog_info WHERE entry = $run", {"run": run}
    ).fetchone()
    if found != (fingerprint(held),):
        raise UserError(
            f"{run}: the lake has it otherwise than the catalog, which is older: run "
            f"`exgrpo catalog` first, then this again."
        )


def write(
    judge: Judge,
    run: str,
    study: str,
    right: Iterator[tuple[str, Case]],
    verdicts: Verdicts,
    results: Path,
) -> Written:
    """Put all verdicts that this version has on the run's answers into log and lake.

    Without any, log and lake stay as they are.
    """
    keys, rows = set(), []
    for trajectory, case in right:
        key = key_of(judge, case)
        if (verdict := verdicts.get(key)) is not None:
            keys.add(key)
            rows.append(
                {
                    "run": run,
                    "trajectory": trajectory,
                    "judge": judge.name,
                    "version": judge.version,
                    "valid": verdict.valid,
                    "reason": verdict.reason,
                }
            )
    if rows:
        folder = judgement_folder(judge.name, run, results)
        shutil.rmtree(folder, ignore_errors=True)
        recorder = Recorder(folder / "log")
        recorder.add("judgements", rows)
        recorder.flush(0, 0)
        add_judgements(judge.name, run, study, results)
    return Written(len(rows), len(keys))


def rows_in_lake(judge: str, run: str, results: Path) -> int:
    """Judgements of any version that the lake holds of a run."""
    entry = read_entry(results / "lake", judgements_entry(judge, run))
    return sum(file.rows for file in entry.tables.values()) if entry else 0
