"""`exgrpo reproduce`: the workflow of a study and its companions, stopped and continued at will.

Snakemake decides what is left to do; this file keeps a second call out, passes an interrupt on to
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
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psutil

from exgrpo.errors import UserError
from exgrpo.hardware import CPU, Hardware, load_hardware
from exgrpo.settings_files import read_yaml
from exgrpo.studies import Study, load_with_companions
from pipeline.gpus import visible
from pipeline.lake import renew
from pipeline.study import finished_runs, write_study

WORKFLOW = Path(__file__).resolve().parents[1] / "workflow"
RESULTS = Path("results")
INTERRUPTED = 130
PATIENCE = 3.0  # s that jobs of a killed call, or those told by Ctrl-C, get to end by themselves


def reproduce(
    name: str,
    cores: int | None = None,
    finished: bool = False,
    hardware: str | None = None,
    profile: str | None = None,
) -> int:
    """Bring study `name` and its companions to their end in the working directory.

    `hardware` is what each training and evaluation is given, `profile` where jobs are sent: one of
    workflow/profiles or a path; None: they run on this machine. `cores`: how many at a time.

    With `finished` nothing is trained: the report is on the runs whose training has ended, and a
    study without any is left out. Returns the exit code. 0: complete. 1: a step failed; its message
    and log are printed. 130: interrupted. Raises UserError when a study has a mistake, when no run
    is finished, or when the results are being worked on already.
    """
    # A mistake in any of them ends here, on one screen, before Snakemake starts.
    studies = load_with_companions(name)
    where = _where(load_hardware(hardware) if hardware else CPU, cores, profile)
    if finished:
        studies = [study for study in studies if finished_runs(study, RESULTS)]
    if not studies:
        raise UserError(
            f"study {name!r}: no run is finished yet, so there is nothing to report on. "
            f"`exgrpo reproduce {name}` trains, and goes on where it was stopped."
        )
    with _lock(RESULTS / ".lock") as lock:
        renew(RESULTS)
        codes = []
        for study in studies:
            codes.append(_reproduce_one(study, where, finished, hardware, lock))
            if codes[-1] == INTERRUPTED:
                break
    if not any(codes):
        print(_where_to_look())
    return max(codes)


def _where(hardware: Hardware, cores: int | None, profile: str | None) -> list[str]:
    """What Snakemake is told of the place where jobs run. UserError when it lacks something."""
    if profile:
        most = ["--jobs", str(cores)] if cores else []
        return ["--profile", str(_profile_folder(profile)), *most]
    if not hardware.gpus:
        return ["--cores", str(cores or min(2, os.cpu_count() or 1))]
    here = len(visible())
    if here < hardware.gpus or hardware.nodes > 1:
        raise UserError(
            f"{hardware.title}: {hardware.nodes} x {hardware.gpus} GPUs, and this machine has "
            f"{here}. Name another with --hardware, or send the jobs to a cluster with --profile."
        )
    # As many jobs as have GPUs; which ones these are is settled in pipeline/gpus.py.
    return ["--cores", str(cores or os.cpu_count() or 1), "--resources", f"devices={here}"]


def _profile_folder(name: str) -> Path:
    """A folder with a `config.yaml` for Snakemake. UserError when it or its plugin is missing."""
    known = WORKFLOW / "profiles"
    folder = next((path for path in (known / name, Path(name)) if path.is_dir()), None)
    if folder is None:
        names = sorted(path.name for path in known.iterdir() if path.name != "default")
        raise UserError(f"unknown profile {name!r}. Known: {', '.join(names)}, or name a folder.")
    executor = read_yaml(folder / "config.yaml").get("executor", "local")
    module = f"snakemake_executor_plugin_{executor.replace('-', '_')}"
    if executor != "local" and not find_spec(module):
        raise UserError(
            f"{folder}: needs Snakemake's plugin for {executor}, which is not installed: "
            f"pip install snakemake-executor-plugin-{executor}, or see docs/clusters.md."
        )
    return folder.resolve()


def _reproduce_one(
    study: Study, where: list[str], finished: bool, hardware: str | None, lock: IO[str]
) -> int:
    """Bring one study to its end, and say how it ended. One that failed does not stop the next."""
    started = time.time()
    write_study(study, RESULTS)
    if not (RESULTS / "workbench.duckdb").exists():
        # It serves every study, so no rule declares it; the study's note about it goes too.
        (RESULTS / study.name / "catalog.json").unlink(missing_ok=True)
    options = [f"study={study.name}"]
    options += [f"hardware={hardware}"] if hardware else []
    options += ["finished=true"] if finished else []
    code = _run_to_end(_snakemake(options, *where), lock)
    if code == 0:
        _write_workflow_report(study.name, options)
        minutes, seconds = divmod(round(time.time() - started), 60)
        trained = len(finished_runs(study, RESULTS))
        state = f"{trained} of {len(study.runs)} runs" if finished else "complete"
        print((RESULTS / study.name / "summary.txt").read_text())
        print(f"Study {study.name}: {state}. This took {minutes} min {seconds} s.")
    elif code != INTERRUPTED:
        print(_explain_failures(study.name, started), file=sys.stderr)
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


def _snakemake(options: list[str], *arguments: str) -> list[str]:
    # Our lock takes the place of Snakemake's, which a killed process leaves behind.
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(WORKFLOW / "Snakefile")]
    profile = ["--workflow-profile", str(WORKFLOW / "profiles" / "default")]
    return [*command, *profile, "--nolock", *arguments, "--config", *options]


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
                _tell_jobs(told[-1])
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


def _tell_jobs(number: int) -> None:
    """Pass a signal on: Ctrl-C ends a job at once, SIGTERM lets training save the step it is in.

    Not to graders, which have sessions of their own: that step still needs them.
    """
    for child in psutil.Process().children(recursive=True):
        try:
            if os.getsid(child.pid) == os.getsid(0):
                child.send_signal(number)
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue


def _write_workflow_report(study: str, options: list[str]) -> None:
    """Snakemake's own report of figures, times and code, when the study's results are newer."""
    folder = RESULTS / study
    report, aside = (folder / f"snakemake-report{end}" for end in (".html", ".unfinished.html"))
    if report.exists() and report.stat().st_mtime > (folder / "summary.txt").stat().st_mtime:
        return
    command = _snakemake(options, "--report", str(aside))
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
