"""`exgrpo reproduce`: the whole workflow of one study under a lock, stopped and continued at will.

Snakemake decides what is left to do; this file keeps a second one out, passes an interrupt on to
every job, and says at the end what happened and where to look.
"""

import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import psutil

from exgrpo.errors import UserError
from exgrpo.settings import load_study
from pipeline.study import write_study

WORKFLOW = Path(__file__).resolve().parents[1] / "workflow"
RESULTS = Path("results")
INTERRUPTED = 130
PATIENCE = 3.0  # s that jobs of a killed call, or those told by Ctrl-C, get to end by themselves


def reproduce(name: str, cores: int | None = None) -> int:
    """Bring study `name` to its end in the working directory; returns the exit code.

    0: complete. 1: a step failed; its message and log are printed. 130: interrupted. Raises
    UserError when the study has a mistake or when the results are being worked on already.
    """
    started = time.monotonic()
    study = load_study(name)  # a mistake in it ends here, on one screen, before Snakemake starts
    cores = cores or min(2, os.cpu_count() or 1)
    with _lock(RESULTS / ".lock") as lock:
        write_study(study, RESULTS)
        if not (RESULTS / "workbench.duckdb").exists():
            # It serves every study, so no rule declares it; the study's note about it goes too.
            (RESULTS / name / "catalog.json").unlink(missing_ok=True)
        began = time.time()
        code = _run_to_end(_snakemake(name, "--cores", str(cores)), lock)
        if code == 0:
            _write_workflow_report(name)
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    if code == 0:
        print((RESULTS / name / "summary.txt").read_text())
        print(
            f"Study {name}: complete. This call took {minutes} min {seconds} s.\n{_where_to_look()}"
        )
    elif code != INTERRUPTED:
        print(_explain_failures(name, began), file=sys.stderr)
    return code


@contextmanager
def _lock(path: Path) -> Iterator[IO[str]]:
    """Hold the results. The lock ends with the last process that inherited the open file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+") as file:
        deadline = time.monotonic() + PATIENCE
        while not _locked(file):
            if time.monotonic() > deadline:
                file.seek(0)
                raise UserError(
                    f"{path}: `exgrpo reproduce` (process {file.read().strip()}) is at work on "
                    "these results, or the last jobs of a killed one still are. Wait for them "
                    "to end, or press Ctrl-C in their terminal; then run this again."
                )
            time.sleep(0.1)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield file


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _snakemake(study: str, *arguments: str) -> list[str]:
    # Our lock takes the place of Snakemake's, which a killed process leaves behind.
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    profile = ["--workflow-profile", str(WORKFLOW / "profiles" / "default")]
    return [*command, *profile, "--nolock", *arguments, "--config", f"study={study}"]


def _environment() -> dict[str, str]:
    """The jobs call `exgrpo` of this very environment, and their progress lines come at once."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return {**os.environ, "PATH": path, "PYTHONUNBUFFERED": "1"}


def _run_to_end(command: list[str], lock: IO[str]) -> int:
    """Run Snakemake; on an interrupt see to it that every job hears of it, and wait for them.

    The lock is the standard input: the one open file that Snakemake hands on to its jobs, so that
    jobs which outlive a killed Snakemake still hold it.
    """
    told: list[int] = []
    stops = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(stop, lambda number, _: told.append(number)) for stop in stops]
    try:
        process = subprocess.Popen(command, stdin=lock, env=_environment())
        heard = 0
        while (code := _wait(process)) is None:
            if len(told) > heard:  # Ctrl-C reaches all by itself; a plain `kill` only us
                heard = len(told)
                _interrupt_children()
    finally:
        for stop, handler in zip(stops, before, strict=True):
            signal.signal(stop, handler)
    if told and code:
        return INTERRUPTED
    return 1 if code else 0


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return None


def _interrupt_children() -> None:
    for child in psutil.Process().children(recursive=True):
        try:
            child.send_signal(signal.SIGINT)
        except psutil.NoSuchProcess:
            continue


def _write_workflow_report(study: str) -> None:
    """Snakemake's own report of figures, times and code, when the study's results are newer."""
    folder = RESULTS / study
    report, aside = (folder / f"snakemake-report{end}" for end in (".html", ".unfinished.html"))
    if report.exists() and report.stat().st_mtime > (folder / "summary.txt").stat().st_mtime:
        return
    command = _snakemake(study, "--report", str(aside))
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True)
    if done.returncode == 0:
        aside.replace(report)
    else:
        print(f"warning: {report}: not written:\n{done.stderr}", file=sys.stderr)


def _explain_failures(study: str, began: float) -> str:
    """The closing message of every log that was written since the time `began` and ends badly."""
    failures = []
    for path in sorted(RESULTS.glob("*/logs/**/*.log")):
        if path.stat().st_mtime < began - 1:
            continue
        if message := _last_error(path.read_text(errors="replace")):
            failures.append(f"{path}:\n{message}")
    if not failures:
        failures = ["A step ended without a message of its own: see Snakemake's lines above."]
    failed = "\n\n".join(failures)
    return f"\nStudy {study}: not complete.\n\n{failed}\n\nMend it and run the same command again."


def _last_error(log: str) -> str | None:
    """What a log says last, if that is a UserError or a traceback (its end, at most 12 lines)."""
    starts = [found.start() for found in re.finditer(r"^(error: |Traceback \()", log, re.MULTILINE)]
    if not starts:
        return None
    return "\n".join(log[starts[-1] :].rstrip().splitlines()[-12:])


def _where_to_look() -> str:
    own = Path(sys.prefix) == Path.cwd() / ".venv"
    app, exgrpo = ("make app", ".venv/bin/exgrpo") if own else ("exgrpo app", "exgrpo")
    return f"Dashboard:  {app}\nSQL prompt: {exgrpo} sql"
