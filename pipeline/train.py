"""Stage: train one run, from its last checkpoint if there is one."""

import fcntl
import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from analysis.alarms import alarms
from analysis.live import read_log
from exgrpo import questions
from exgrpo.checkpoint import Progress
from exgrpo.errors import PreemptedError, UserError
from exgrpo.hardware import CPU, Hardware
from exgrpo.policy import load_positions, load_tokenizer, tokenizer_hash
from exgrpo.processes import ALONE, Processes, processes_now
from exgrpo.prompts import prompts_by
from exgrpo.room import longest_prompts, require_room
from exgrpo.settings import RunSettings
from exgrpo.studies import Study
from exgrpo.tables.manifest import attempts
from exgrpo.trainer import StoppedError, train
from pipeline.files import (
    DONE,
    made_base,
    mark_done,
    question_file,
    questions_hash,
    require_done,
    require_prompts,
    run_folder,
    run_settings,
    study_folder,
    write_json,
)
from pipeline.provenance import now, run_row

BEST, LOG = "best", "log"  # folders of a run that others may need
PROGRESS_SECONDS = 10.0
LOCK_TRIES = 25  # half a second: who asks how a run is getting on has a share of it for an instant


def train_run(
    study: Study, run: str, results: Path, threads: int, hardware: Hardware = CPU
) -> None:
    """Train a run of the study; leaves its log, `final/`, `run.json` and, last, `done.json`.

    Of several processes each calls this, and the first writes. A run that is done is left as it is.
    Raises PreemptedError when SIGTERM came: the step that it was in is trained and saved then.
    """
    torch.set_num_threads(threads)
    processes = processes_now()
    settings = run_settings(study, run)
    folder = run_folder(study, run, results)
    base = made_base(study, results)
    require_done(study_folder(study, results) / "questions", questions_hash(settings))
    best = _left_by(settings.training.start_from, BEST, study, run, results)
    pool_log = _left_by(settings.join.pool, LOG, study, run, results)
    with _only_process(folder, processes), _preemption(processes) as preempted:
        if processes.first_does((folder / DONE).is_file):
            if processes.first:
                print(f"{run}: done, nothing to train. Remove {folder} to train it again.")
            return
        tokenizer = load_tokenizer(base)
        made_by = prompts_by(tokenizer, settings.prompt)
        require_prompts(study_folder(study, results) / "questions", made_by)
        asked = {
            split: questions.load(question_file(study, split, results))
            for split in ("train", "validation")
        }
        require_room(longest_prompts(asked), settings, load_positions(base))
        row = run_row(study, run, settings, results, hardware) | {
            "tokenizer": tokenizer_hash(tokenizer)
        }
        if processes.first:
            write_json(folder / "settings.json", settings.model_dump(mode="json"))
            _open_row(row, folder)
        warned: set[str] = set()

        def heartbeat(progress: Progress) -> None:
            row.update(
                steps=progress.step, seconds=progress.seconds, attempts=attempts(folder / LOG)
            )
            write_json(folder / "run.json", row)
            _warn(settings, folder, warned)

        try:
            progress = train(
                settings,
                base,
                asked["train"],
                asked["validation"],
                folder,
                start_path=str(best) if best else None,
                pool_log=pool_log,
                report=ProgressLine(settings),
                heartbeat=heartbeat,
                stop=preempted.is_set,
                hardware=hardware,
                processes=processes,
            )
        except StoppedError as error:
            if processes.first:
                write_json(folder / "run.json", row | {"status": "stopped", "reason": str(error)})
            raise
        if progress.step < settings.training.steps:
            reached = f"Saved after step {progress.step}" if progress.step else "No step was begun"
            raise PreemptedError(
                f"{run}: told to end (SIGTERM). {reached} of {settings.training.steps}; the same "
                f"command goes on from there."
            )
        if processes.first:
            row |= {"status": "done", "finished": now()}
            heartbeat(progress)
            mark_done(folder, run=run, steps=progress.step, attempts=row["attempts"])


def _warn(settings: RunSettings, folder: Path, warned: set[str]) -> None:
    """Print each alarm that the log gives, the first time that it does."""
    log = read_log(folder)
    new = [each for each in alarms(log.steps, log.vocabulary, log.marks) if each.name not in warned]
    for alarm in new:
        print(f"{_named(settings)}: {alarm.name}: {alarm.sentence}", flush=True)
    warned.update(alarm.name for alarm in new)


def _named(settings: RunSettings) -> str:
    return f"{settings.arm}-s{settings.seed}"


@contextmanager
def _preemption(processes: Processes = ALONE) -> Iterator[threading.Event]:
    """An event that SIGTERM sets. It may come twice, from the system and from `exgrpo reproduce`.

    What ends the process at once is Ctrl-C or SIGKILL. One of several is about to end afterwards,
    and its launcher, which tells all to when the first has ended, is not to cut it off.
    """
    told = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: told.set())
    try:
        yield told
    finally:
        signal.signal(signal.SIGTERM, before if processes.count == 1 else signal.SIG_IGN)


def _left_by(source: str | None, part: str, study: Study, run: str, results: Path) -> Path | None:
    """The folder that the run `source` left for this one. UserError when it is not finished."""
    if source is None:
        return None
    folder = run_folder(study, source, results)
    if not (folder / DONE).is_file() or not (folder / part).is_dir():
        raise UserError(
            f"{folder / part}: missing or not finished, and run {run!r} needs it. Train run "
            f"{source!r} first; `exgrpo reproduce {study.name}` trains both in order."
        )
    return folder / part


def _open_row(row: dict[str, Any], folder: Path) -> None:
    """Begin the row of table `runs`; a resumed run keeps when it was first started."""
    before = folder / "run.json"
    if before.exists():
        row["started"] = json.loads(before.read_text())["started"]
    write_json(before, row)


@contextmanager
def _only_process(folder: Path, processes: Processes = ALONE) -> Iterator[None]:
    """The first holds the folder's lock; the system frees it even when the process is killed."""
    if not processes.first:
        yield
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / ".lock").open("w")
    except OSError as error:
        raise UserError(
            f"{folder}: cannot write: {error.strerror}. Mend the permissions, then run again."
        ) from error
    with file as lock:
        for _ in range(LOCK_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                time.sleep(0.02)
        else:
            raise UserError(
                f"{folder}: another process is training this run. Wait for it or end it."
            )
        yield


class ProgressLine:
    """Prints one line a run every few seconds: step, reward, tokens/s, time left."""

    def __init__(self, settings: RunSettings) -> None:
        self.name = _named(settings)
        self.steps = settings.training.steps
        self.began = self.printed = time.monotonic()
        self.done = self.tokens = 0

    def __call__(self, metrics: dict[str, Any]) -> None:
        now_ = time.monotonic()
        self.done += 1
        self.tokens += metrics["sampled_tokens"]
        step, last = metrics["step"], metrics["step"] == self.steps
        if now_ - self.printed < PROGRESS_SECONDS and not last and self.done > 1:
            return
        self.printed = now_
        elapsed = now_ - self.began
        left = elapsed / self.done * (self.steps - step)
        print(
            f"{self.name:<28} step {step:>4}/{self.steps}  reward {metrics['reward'] or 0:.3f}  "
            f"from buffer {metrics['experiential_groups']:>2}  "
            f"{self.tokens / elapsed:>6,.0f} tokens/s  ETA {left // 60:.0f}:{left % 60:02.0f}",
            flush=True,
        )
