"""`exgrpo status`: what a run is doing, read from its folder without a trace."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lake_fixture import STEPS, STUDY, DemoResults, demo_study

from analysis.errors import UserError
from analysis.live import PlannedRun, find_runs, is_training, last_checkpoint, read_log, run_status
from analysis.live import statuses as read_statuses
from analysis.status_words import as_row, duration, sparkline
from exgrpo.records import Recorder
from pipeline.cli import RESULTS
from pipeline.status import print_status
from pipeline.train import _only_process

ROOT = Path(__file__).resolve().parents[1]
Captured = pytest.CaptureFixture[str]


def log_steps(folder: Path, steps: int, resumed_from: int = -1, **columns: Any) -> None:
    """Log steps up to `steps` of 2 s and 100 tokens, with a reward that grows by a hundredth."""
    recorder = Recorder(folder / "log", resumed_from)
    first = max(resumed_from, 0) + 1
    rows = [
        {
            "run": folder.name,
            "step": step,
            "reward": step / 100,
            "seconds": 2.0,
            "record_seconds": 0.5,
            "sampled_tokens": 100,
            **columns,
        }
        for step in range(first, steps + 1)
    ]
    recorder.add("steps", rows)
    recorder.flush(first, steps)


def begin(folder: Path, steps: int = 25, **run: Any) -> PlannedRun:
    """A run that has begun, of 40 planned steps, with a log of some."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"study": "s", "arm": "a", "training": {"steps": 40}}
    (folder / "settings.json").write_text(json.dumps(settings))
    (folder / "run.json").write_text(json.dumps({"run": folder.name, **run}))
    log_steps(folder, steps)
    return PlannedRun("s", folder.name, "a", 40, folder)


def tree(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in [folder, *folder.rglob("*")]
    }


def state(folder: Path) -> str:
    return run_status(PlannedRun("s", "r", "a", 40, folder), read_log(folder)).state


def test_a_run_waits_runs_is_interrupted_stops_and_is_done(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert state(folder) == "waiting"
    with _only_process(folder):
        assert state(folder) == "running"
        begin(folder, status="running")
        assert state(folder) == "running"
    assert state(folder) == "interrupted"
    reason = "the loss of step 7 is nan"
    (folder / "run.json").write_text(json.dumps({"status": "stopped", "reason": reason}))
    stopped = read_statuses(folder)[0]
    assert (stopped.state, stopped.notes) == ("stopped", (reason,))
    with _only_process(folder):
        assert state(folder) == "running"
    (folder / "done.json").write_text("{}")
    assert state(folder) == "done"


def test_looking_leaves_no_trace_and_keeps_nobody_out(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    with _only_process(run.folder):
        before = tree(run.folder)
        assert is_training(run.folder)
        assert run_status(run, read_log(run.folder)).step == 25
        assert tree(run.folder) == before
    assert not is_training(run.folder)
    with _only_process(run.folder):  # the share that was asked for is given back
        pass


def test_a_training_begins_while_others_look(tmp_path: Path) -> None:
    look = f"""
from pathlib import Path
from analysis.live import is_training
print(is_training(Path({str(tmp_path)!r})), flush=True)
while True:
    is_training(Path({str(tmp_path)!r}))
"""
    with subprocess.Popen([sys.executable, "-c", look], stdout=subprocess.PIPE, cwd=ROOT) as other:
        assert other.stdout is not None and other.stdout.readline() == b"False\n"
        try:
            for _ in range(300):
                with _only_process(tmp_path):
                    assert is_training(tmp_path)
        finally:
            other.kill()


def test_the_numbers_of_a_running_run(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    checkpoints = run.folder / "checkpoints"
    checkpoints.mkdir()
    for name, written in (("step-00000020.pt", 1000), ("step-00000010.pt", 2000)):
        (checkpoints / name).touch()
        os.utime(checkpoints / name, (written, written))
    with _only_process(run.folder):
        found = run_status(run, read_log(run.folder), now=1006.0)
    assert (found.step, found.steps, found.checkpoint, found.checkpoint_age) == (25, 40, 20, 6.0)
    assert found.steps_a_second == pytest.approx(0.5)
    assert found.tokens_a_second == pytest.approx(50)
    assert found.eta == pytest.approx(15 / 0.5 - 6)
    assert found.reward == pytest.approx(sum(range(16, 26)) / 1000)
    assert found.reward_change == pytest.approx(0.1)
    assert found.curve[-1] == pytest.approx(found.reward) and list(found.curve) == sorted(
        found.curve
    )
    assert as_row(found) == {
        "run": "run",
        "state": "running",
        "step": "25/40",
        "steps/s": "0.50",
        "tokens/s": "50",
        "ETA": "0:24",
        "checkpoint": "20, 0:06 ago",
        "reward": "0.205",
        "change": "+0.100",
        "curve": "▁▁▁▁▂▂▂",
        "alarm": "",
    }


def test_a_run_that_has_logged_no_step_has_no_numbers(tmp_path: Path) -> None:
    run = begin(tmp_path / "run", steps=0)
    found = run_status(run, read_log(run.folder))
    assert (found.step, found.eta, found.reward, found.curve, found.alarms) == (
        0, None, None, (), (),
    )  # fmt: skip
    assert set(as_row(found).values()) == {"run", "interrupted", "0/40", ""}


def test_the_checkpoint_is_the_newest_step_whatever_its_name_ends_with(tmp_path: Path) -> None:
    assert last_checkpoint(tmp_path) == (None, None)
    (tmp_path / "checkpoints").mkdir()
    for name in ("step-00000010-0a1b.pt", "step-00000020.pt.tmp", "step-00000030.damaged", "x.pt"):
        (tmp_path / "checkpoints" / name).touch()
    assert last_checkpoint(tmp_path)[0] == 10


def test_a_later_attempt_and_a_torn_line_are_read_as_readers_do(tmp_path: Path) -> None:
    run = begin(tmp_path / "run", steps=10)
    log_steps(run.folder, 30, resumed_from=10, reward=0.5)
    log_steps(run.folder, 20, resumed_from=10, reward=0.7)
    with (run.folder / "log" / "manifest.jsonl").open("a") as manifest:
        manifest.write('{"kind": "part", "table": "ste')
    steps = read_log(run.folder).steps
    assert steps["step"].to_list() == list(range(1, 21))
    assert steps["reward"].to_list()[10:] == [0.7] * 10


def test_a_missing_part_and_another_version_are_said(tmp_path: Path) -> None:
    run = begin(tmp_path / "run")
    manifest = run.folder / "log" / "manifest.jsonl"
    lines = manifest.read_text()
    manifest.write_text(lines.replace('"schema_version": ', '"schema_version": 9'))
    foreign = run_status(run, read_log(run.folder))
    assert foreign.step == 0
    assert "schema version 9" in foreign.notes[0]
    manifest.write_text(lines)
    next((run.folder / "log" / "steps").glob("*.parquet")).unlink()
    missing = read_log(run.folder)
    assert missing.problem is not None and "missing" in missing.problem
    assert missing.steps.is_empty()


def test_a_folder_that_comes_and_goes_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    kept = begin(tmp_path / "kept")
    folder, over = tmp_path / "run", threading.Event()

    def churn() -> None:
        while not over.is_set():
            shutil.copytree(kept.folder, folder)
            shutil.rmtree(folder)

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        run = replace(kept, folder=folder)
        heights = {run_status(run, read_log(folder)).step for _ in range(200)}
    finally:
        over.set()
        writer.join()
    assert heights <= {0, 25}


def test_runs_are_found_by_results_or_study(demo: DemoResults) -> None:
    listed = list(demo.study.runs)
    study = demo.results / STUDY
    assert [run.run for run in find_runs(demo.results)] == listed
    assert [run.run for run in find_runs(study)] == listed
    assert {run.steps for run in find_runs(study)} == {STEPS}
    assert {found.state for found in read_statuses(study)} == {"done"}
    assert {found.alarms for found in read_statuses(study)} == {()}


def test_runs_that_have_not_begun_are_waiting(tmp_path: Path) -> None:
    study = demo_study()
    folder = tmp_path / STUDY
    first, *others = study.runs
    begin(folder / "runs" / first)
    (folder / "study.json").write_text(study.model_dump_json())
    found = {status.run: status.state for status in read_statuses(tmp_path)}
    assert found == {first: "interrupted"} | dict.fromkeys(others, "waiting")
    assert [(run.run, run.steps) for run in find_runs(folder / "runs" / first)] == [(first, 40)]
    (folder / "study.json").unlink()
    assert [run.run for run in find_runs(tmp_path)] == [first]
    (folder / "study.json").write_text('{"name": "x"}')
    with pytest.raises(UserError, match=r"study\.json: lists no runs"):
        find_runs(tmp_path)


def command_line(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.cli", "status", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT)


def test_the_command_prints_a_line_a_run_and_what_is_wrong(demo: DemoResults) -> None:
    done = command_line(str(demo.results))
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"study {STUDY}"
    assert [line.split()[:3] for line in lines[3:]] == [
        [run, "done", f"{STEPS}/{STEPS}"] for run in demo.study.runs
    ]


def test_json_is_for_machines(demo: DemoResults) -> None:
    done = command_line("--json", str(demo.results / STUDY), str(demo.results / "lake"))
    found = json.loads(done.stdout)
    assert [run["run"] for run in found] == list(demo.study.runs)
    assert found[0]["reward"] == pytest.approx(
        pl.Series([row["reward"] for row in demo.rows["steps"] if row["run"] == found[0]["run"]])
        .mean()
    )  # fmt: skip
    assert "lake: holds no run" in done.stderr


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_without_runs_is_a_sentence(tmp_path: Path, capsys: Captured, there: bool) -> None:
    place = tmp_path / "results"
    if there:
        place.mkdir()
    print_status([place])
    assert "run. `exgrpo reproduce` begins the default study." in capsys.readouterr().out
    assert not RESULTS.is_absolute()  # what is looked at unless told


def test_alarms_and_reasons_are_sentences_under_the_table(tmp_path: Path, capsys: Captured) -> None:
    run = begin(tmp_path / "run", steps=5)
    log_steps(run.folder, 20, resumed_from=5, signal_groups=0, loss=float("inf"))
    reason = "the loss of step 20 is \x1b[31minf"
    (run.folder / "run.json").write_text(json.dumps({"status": "stopped", "reason": reason}))
    print_status([run.folder])
    out = capsys.readouterr().out
    assert "stopped" in out and "not finite, no signal" in out
    assert "run run: The loss of step 6 is inf.\n" in out
    assert "run run: the loss of step 20 is \\x1b[31minf\n" in out and "\x1b" not in out
    print_status([run.folder], as_json=True)
    alarms = json.loads(capsys.readouterr().out)[0]["alarms"]
    assert [(alarm["name"], alarm["step"]) for alarm in alarms] == [
        ("not finite", 6),
        ("no signal", 20),
    ]


def test_watch_repeats_until_it_is_interrupted(demo: DemoResults) -> None:
    command = [sys.executable, "-m", "pipeline.cli", "status", "--json", "--watch", "0.1"]
    with subprocess.Popen(
        [*command, str(demo.results)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        rounds = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
        assert process.stderr.read() == b""
    assert [len(each) for each in rounds] == [len(demo.study.runs)] * 3


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, ""), (0, "0:00"), (59.6, "1:00"), (3599, "59:59"), (3600, "1:00:00"), (2e5, "2 days")],
)
def test_durations(seconds: float | None, words: str) -> None:
    assert duration(seconds) == words


def test_sparkline_ends_at_its_ends() -> None:
    assert sparkline((-1.0, 0.0, 0.5, 1.0, 2.0)) == "▁▁▅██"
