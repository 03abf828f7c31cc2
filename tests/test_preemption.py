"""SIGTERM: the step at work is ended and saved, exit code 75, and the next start goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from dying import run_folder, small_study
from test_unkillable import require_equal
from test_unkillable import unbroken as unbroken
from working_folder import ROOT, SMOKE, edit, exgrpo, project

from exgrpo.studies import load_study
from exgrpo.tables.manifest import attempts, live_parts

pytestmark = pytest.mark.slow


def wait_until(
    reached: Callable[[], bool], process: subprocess.Popen[str], limit: float = 120
) -> None:
    deadline = time.monotonic() + limit
    while not reached():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)


def start(folder: Path, command: list[str]) -> subprocess.Popen[str]:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def train_command(folder: Path) -> list[str]:
    run = run_folder(folder).name
    return [sys.executable, "-m", "pipeline.cli", "train", "--study", "small", "--run", run]


def has_trained(run: Path) -> Callable[[], bool]:
    return lambda: any(run.glob("checkpoints/step-*.pt"))


def newest_step(run: Path) -> int:
    return max(int(path.stem.removeprefix("step-")) for path in run.glob("checkpoints/step-*.pt"))


@pytest.fixture
def folder(tmp_path: Path, able_folder: str) -> Path:
    small_study(tmp_path, able_folder)
    return tmp_path


def test_sigterm_saves_the_step_and_the_next_start_goes_on_bit_equal(
    folder: Path, unbroken: Path
) -> None:
    run = run_folder(folder)
    process = start(folder, train_command(folder))
    wait_until(has_trained(run), process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 75, errors
    saved = newest_step(run)
    assert f"preempted: {run.name}: told to end (SIGTERM). Saved after step {saved} of 12" in errors
    assert "Traceback" not in errors
    assert not (run / "done.json").exists() and not (run / "final").exists()
    assert max(part.last_step for part in live_parts(run / "log")) == saved < 12

    done = exgrpo(folder, *train_command(folder)[3:])
    assert done.returncode == 0, done.stderr
    resumed = json.loads((run / "log/manifest.jsonl").read_text().splitlines()[-1])
    assert resumed["attempt"] == 2
    require_equal(run, unbroken)

    before = {path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock"}
    again = exgrpo(folder, *train_command(folder)[3:])
    assert again.returncode == 0 and f"{run.name}: done, nothing to train" in again.stdout
    assert before == {
        path: path.stat().st_mtime_ns for path in run.rglob("*") if path.name != ".lock"
    }


LONG_STEP = """
import time
from pipeline.train import _preemption
with _preemption() as told:
    print("begun", flush=True)
    told.wait()
    print("told", flush=True)
    time.sleep(1)
    print("ended", flush=True)
    time.sleep(100)
"""


def test_a_second_sigterm_does_not_cut_the_step_off_but_ctrl_c_does(tmp_path: Path) -> None:
    process = start(tmp_path, [sys.executable, "-c", LONG_STEP])
    assert process.stdout is not None
    for said in ("begun\n", "told\n"):
        assert process.stdout.readline() == said
        process.terminate()
    assert process.stdout.readline() == "ended\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode and "KeyboardInterrupt" in errors


def test_a_sigterm_to_the_whole_job_passes_the_pipe_of_the_rule(folder: Path) -> None:
    """The rule's own shell command, as Snakemake calls it: bash, pipefail and tee hear it too."""
    run = run_folder(folder)
    rule = (ROOT / "workflow/rules/train.smk").read_text().partition("shell:")[2]
    shell = eval(f"({rule})", {"WHERE": " --threads 1"}).format(
        wildcards=type("Wildcards", (), {"study": "small", "run": run.name}), log="log"
    )
    assert shell.startswith("trap") and shell.endswith("tee -ia log)"), shell
    process = start(folder, ["bash", "-c", f"set -euo pipefail; {shell}"])
    wait_until(has_trained(run), process)
    os.killpg(process.pid, signal.SIGTERM)
    printed, _ = process.communicate(timeout=60)
    assert process.returncode == 75
    assert "preempted: " in printed
    assert (folder / "log").read_text() == printed


def test_o33_reproduce_told_to_end_saves_and_snakemake_tries_a_preempted_run_again(
    tmp_path: Path,
) -> None:
    """Checkpoints are no declared output, so they are there whenever the rule starts again."""
    folder = project(tmp_path)
    edit(folder / SMOKE, "training: {steps: 6,", "training: {steps: 60,")
    edit(folder / SMOKE, "arms: [on_policy, exgrpo]", "arms: [exgrpo]")
    (name,) = load_study("smoke", folder / "config").runs
    run = folder / "results/smoke/runs" / name
    process = start(folder, [sys.executable, "-m", "pipeline.cli", "reproduce", "smoke"])
    wait_until(has_trained(run), process, 300)
    os.killpg(process.pid, signal.SIGTERM)  # as a machine does that is taken away
    output, errors = process.communicate(timeout=100)
    assert process.returncode == 130, output + errors
    saved = newest_step(run)
    assert f"Saved after step {saved} of 60" in output + errors
    assert attempts(run / "log") == 1, "told to end, Snakemake tries nothing again"

    command = [
        sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "workflow/Snakefile"),
        "--cores", "1", "--config", "study=smoke",
        "--", str((run / "done.json").relative_to(folder)),
    ]  # fmt: skip
    process = start(folder, command)
    wait_until(lambda: newest_step(run) > saved, process, 300)
    (training,) = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if {"train", name} <= set(child.cmdline())
    ]
    training.terminate()
    output, errors = process.communicate(timeout=200)
    assert process.returncode == 0, output + errors
    assert "Trying to restart job" in output + errors
    starts = [
        line
        for line in map(json.loads, (run / "log/manifest.jsonl").read_text().splitlines())
        if line["kind"] == "attempt"
    ]
    assert [line["attempt"] for line in starts] == [1, 2, 3]
    assert starts[1]["resumed_from"] == saved < starts[2]["resumed_from"] < 60
    assert json.loads((run / "done.json").read_text())["steps"] == 60
