"""Runs while they are trained: what their logs hold so far, and how they are getting on.

Everything here only reads. The log is read through its manifest, so that a part is there as a
whole or not at all; a part that was listed a moment ago and is gone is looked up once more.
"""

import fcntl
import json
import math
import re
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import polars as pl

from analysis.alarms import MARKERS, MARKS_SCHEMA, WINDOW, Alarm, alarms, smoothed
from analysis.errors import UserError
from analysis.lake import scan
from exgrpo.tables import STEPS, TRAJECTORIES, VOCABULARY
from exgrpo.tables.manifest import LogError, Part, check_part, live_parts
from exgrpo.tables.schema import SCHEMA_VERSION

State = Literal["waiting", "running", "stopped", "interrupted", "done"]

LOOKS = 3  # at a log that changes while it is read
POINTS = 8  # of the little curve


@dataclass(frozen=True)
class PlannedRun:
    """A run of a study and its folder, which need not be there yet. steps: how many it shall do."""

    study: str
    run: str
    arm: str
    steps: int
    folder: Path


@dataclass(frozen=True)
class RunLog:
    """The rows of table `steps` that a run has logged, and what could not be read of them.

    vocabulary: number of tokens, where the log says. problem: one sentence, or None. marks: how
    many answers were marked, see `analysis.alarms`; None of a run that is done, for it is not
    warned any more.
    """

    steps: pl.DataFrame
    vocabulary: int | None = None
    problem: str | None = None
    marks: pl.DataFrame | None = None


@dataclass(frozen=True)
class RunStatus:
    """One line of `exgrpo status`. Times are in seconds; None is what is not known (yet)."""

    study: str
    run: str
    arm: str
    state: State
    step: int  # the newest in the log
    steps: int
    steps_a_second: float | None
    tokens_a_second: float | None
    eta: float | None
    checkpoint: int | None  # its step
    checkpoint_age: float | None
    reward: float | None  # mean of the newest WINDOW steps
    reward_change: float | None  # against the WINDOW steps before
    curve: tuple[float, ...]  # the smoothed reward at a few steps, oldest first
    alarms: tuple[Alarm, ...]
    notes: tuple[str, ...]  # why it stopped, and what of its log could not be read


def find_runs(place: Path) -> list[PlannedRun]:
    """The runs of a results folder, of one study's folder, or of one run's folder.

    They are those that `study.json` lists, in its order, begun or not; without that file the run
    folders that are there. Raises UserError on a file of settings that cannot be read.
    """
    if (place / "settings.json").is_file():
        return [_planned(_json(place / "settings.json"), place.resolve())]
    if (place / "study.json").is_file():
        listed = _json(place / "study.json")
        return _listed(place, listed)
    if (place / "runs").is_dir():
        folders = sorted(path.parent for path in (place / "runs").glob("*/settings.json"))
        return [_planned(_json(folder / "settings.json"), folder) for folder in folders]
    studies = sorted(path for path in place.glob("*") if path.is_dir()) if place.is_dir() else []
    return [
        run
        for study in studies
        if (study / "study.json").is_file() or (study / "runs").is_dir()
        for run in find_runs(study)
    ]


def read_log(folder: Path) -> RunLog:
    """The steps that the run in `folder` has logged, sorted; none where it has not begun.

    Parts that another version of the workbench wrote are left out and said.
    """
    log, problem = folder / "log", ""
    for _ in range(LOOKS):
        try:
            live = live_parts(log)
            ours = [part for part in live if part.schema_version == SCHEMA_VERSION]
            frames = [_rows(log, part) for part in ours if part.table == STEPS.name]
            marks = None if (folder / "done.json").is_file() else _marks(log, ours)
        except (LogError, OSError, pl.exceptions.PolarsError) as error:
            problem = " ".join(str(error).split())
            continue
        steps = pl.concat([pl.DataFrame(schema=STEPS.polars_schema), *frames]).sort("step")
        tokens = sum(part.rows for part in ours if part.table == VOCABULARY.name)
        foreign = {part.schema_version for part in live} - {SCHEMA_VERSION}
        problem = _of_another_version(foreign) if foreign else ""
        return RunLog(steps, tokens or None, problem or None, marks)
    return RunLog(pl.DataFrame(schema=STEPS.polars_schema), problem=problem)


def run_status(run: PlannedRun, log: RunLog, now: float | None = None) -> RunStatus:
    """How a run is getting on. now: the time, seconds since 1970; the clock's unless given."""
    now = time.time() if now is None else now
    state, reason = _state(run.folder)
    step = int(log.steps["step"][-1]) if log.steps.height else 0
    checkpoint, written = last_checkpoint(run.folder)
    newest, before = log.steps.tail(WINDOW), log.steps.tail(2 * WINDOW).head(-WINDOW)
    seconds = _total(newest, "seconds")
    speed = newest.height / seconds if seconds else None
    reward, earlier = _mean(newest["reward"]), _mean(before["reward"])
    return RunStatus(
        study=run.study,
        run=run.run,
        arm=run.arm,
        state=state,
        step=step,
        steps=run.steps,
        steps_a_second=speed,
        tokens_a_second=_total(newest, "sampled_tokens") / seconds if seconds else None,
        eta=_eta(run.steps - step, speed, written, now) if state == "running" else None,
        checkpoint=checkpoint,
        checkpoint_age=None if written is None else max(0.0, now - written),
        reward=reward,
        reward_change=None if reward is None or earlier is None else reward - earlier,
        curve=_curve(log.steps),
        alarms=alarms(log.steps, log.vocabulary, log.marks),
        notes=tuple(note for note in (reason, log.problem) if note),
    )


def statuses(place: Path) -> list[RunStatus]:
    """How every run under `place` is getting on, see `find_runs`."""
    return [run_status(run, read_log(run.folder)) for run in find_runs(place)]


def last_checkpoint(folder: Path) -> tuple[int | None, float | None]:
    """Step and time (seconds since 1970) of the newest checkpoint; None, None without one."""
    found = []
    for path in (folder / "checkpoints").glob("step-*.pt"):
        if match := re.match(r"step-(\d+)", path.name):
            try:
                found.append((int(match[1]), path.stat().st_mtime))
            except FileNotFoundError:  # overtaken by a newer one
                continue
    return max(found, default=(None, None))


def is_training(folder: Path) -> bool:
    """Whether a process holds the lock of the run's folder; asks for a share of it and lets go."""
    try:
        with (folder / ".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # no lock: nobody has ever trained here
        pass
    return False


def _state(folder: Path) -> tuple[State, str | None]:
    """What the run in the folder is doing and, where it stopped by itself, why."""
    if is_training(folder):
        return "running", None
    if (folder / "done.json").is_file():
        return "done", None
    if not (folder / "settings.json").is_file():
        return "waiting", None
    try:
        row = _json(folder / "run.json")
    except UserError:  # killed before it was written, or the folder is being removed
        row = {}
    if row.get("status") == "stopped":
        return "stopped", row.get("reason")
    return "interrupted", None


def _listed(place: Path, study: Any) -> list[PlannedRun]:
    try:
        runs = study["runs"]
        return [_planned(settings, place / "runs" / run) for run, settings in runs.items()]
    except (KeyError, TypeError, AttributeError) as error:
        raise UserError(
            f"{place / 'study.json'}: lists no runs ({error!r}). "
            f"`exgrpo reproduce {place.name}` writes it anew."
        ) from error


def _planned(settings: dict[str, Any], folder: Path) -> PlannedRun:
    try:
        steps = int(settings["training"]["steps"])
        return PlannedRun(settings["study"], folder.name, settings["arm"], steps, folder)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{folder}: its settings name no study, arm or `training.steps` ({error!r}). "
            f"`exgrpo reproduce` writes them anew."
        ) from error


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UserError(
            f"{path}: cannot be read: {error}. `exgrpo reproduce` writes it anew."
        ) from error


@lru_cache(maxsize=4096)
def _rows(log: Path, part: Part) -> pl.DataFrame:
    """The rows of a part of table `steps`: it never changes, so that it is read once."""
    return scan([check_part(log, part)], STEPS).collect()


def _marks(log: Path, parts: list[Part]) -> pl.DataFrame:
    """How many answers of each step were marked, by marker."""
    frames = [_marks_of(log, part) for part in parts if part.table == TRAJECTORIES.name]
    return pl.concat([pl.DataFrame(schema=MARKS_SCHEMA), *frames])


@lru_cache(maxsize=4096)
def _marks_of(log: Path, part: Part) -> pl.DataFrame:
    """The same of one part; only the columns needed are read, and once."""
    rows = scan([check_part(log, part)], TRAJECTORIES)
    has = {"flawed": ~pl.col("chain_valid")} | {
        name: pl.col(name) for name in ("shortcut", "code", "repetition")
    }
    replayed = pl.col("replayed")
    right = ~replayed & pl.col("correct")
    counted = [
        rows.group_by("step").agg(
            right=(right & marked.is_not_null()).sum(),
            right_marked=(right & marked).sum(),
            replayed=(replayed & marked.is_not_null()).sum(),
            replayed_marked=(replayed & marked).sum(),
            marker=pl.lit(marker),
        )
        for marker, marked in ((marker, has[marker]) for marker in MARKERS)
    ]
    return pl.concat(pl.collect_all(counted)).select(
        pl.col(name).cast(kind) for name, kind in MARKS_SCHEMA.items()
    )


def _of_another_version(versions: set[int]) -> str:
    named = ", ".join(str(version) for version in sorted(versions))
    return (
        f"Parts of the log with schema version {named} are left out; this workbench reads "
        f"version {SCHEMA_VERSION}."
    )


def _total(steps: pl.DataFrame, column: str) -> float:
    return float(steps[column].sum())


def _mean(values: pl.Series) -> float | None:
    """Mean of what is known and finite."""
    mean = values.filter(values.is_finite()).mean()
    return mean if isinstance(mean, float) else None


def _eta(left: int, speed: float | None, written: float | None, now: float) -> float | None:
    """Seconds to go. Steps done since the last checkpoint are not in the log yet."""
    if not speed:
        return None
    since = 0.0 if written is None else now - written
    return max(0.0, left / speed - max(0.0, since))


def _curve(steps: pl.DataFrame) -> tuple[float, ...]:
    """The smoothed reward at POINTS steps, evenly spaced and the newest among them."""
    values = steps.select(smoothed("reward"))["reward"].drop_nulls()
    stride = max(1, math.ceil(values.len() / POINTS))
    return tuple(values.reverse().gather_every(stride).reverse().to_list())
