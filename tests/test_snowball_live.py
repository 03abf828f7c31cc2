"""The warning while a training runs: read from its log, shown by status, printed once."""

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from test_status import begin

from analysis.alarms import MARKS_SCHEMA
from analysis.live import read_log, run_status
from exgrpo.records import Recorder
from exgrpo.settings import RunSettings
from pipeline.train import _warn

STEPS, SHARES = 80, (0.1, 0.8)  # the marked share at the first step and the last


def trajectory(step: int, slot: int, replayed: bool, **columns: Any) -> dict[str, Any]:
    row = {"run": "run", "step": step, "group": slot // 8, "slot": slot % 8, "question": "q"}
    row |= {"trajectory": f"run:{step}:{slot}", "replayed": replayed, "correct": True}
    return row | {"code": False, "repetition": False} | columns


def log_marks(folder: Path, steps: int = STEPS, a_step: int = 48) -> None:
    """Right answers, an eighth of them replayed, ever more of them flawed; parts of 40 steps."""
    recorder = Recorder(folder / "log", -1)
    for first in range(1, steps + 1, 40):
        last = min(first + 39, steps)
        rows = []
        for step in range(first, last + 1):
            flawed = SHARES[0] + (SHARES[1] - SHARES[0]) * step / steps
            for slot in range(a_step):
                luck = (slot * 37 + step * 11) % 97 / 97
                valid = None if slot == 1 else luck >= flawed
                rows.append(trajectory(step, slot, slot % 8 == 0, chain_valid=valid))
        recorder.add("trajectories", rows)
        recorder.add("steps", [{"run": "run", "step": step} for step in range(first, last + 1)])
        recorder.flush(first, last)


def test_marks_are_counted_as_they_were_logged(tmp_path: Path) -> None:
    rows = [
        trajectory(1, 0, False, chain_valid=False, shortcut=True, code=True),
        trajectory(1, 1, False, chain_valid=True, shortcut=False),
        trajectory(1, 2, False, chain_valid=None, shortcut=None, code=None),
        trajectory(1, 3, False, chain_valid=False, shortcut=True, correct=False),
        trajectory(1, 4, True, chain_valid=False, shortcut=False),
        trajectory(2, 0, True, chain_valid=True, shortcut=None),
    ]
    recorder = Recorder(tmp_path / "run" / "log", -1)
    recorder.add("trajectories", rows)
    recorder.flush(1, 2)
    marks = read_log(tmp_path / "run").marks
    assert marks is not None and dict(marks.schema) == MARKS_SCHEMA
    found = {(row[0], row[1]): row[2:] for row in marks.rows()}
    assert found == {
        ("flawed", 1): (2, 1, 1, 1),
        ("flawed", 2): (0, 0, 1, 0),
        ("shortcut", 1): (2, 1, 1, 0),
        ("shortcut", 2): (0, 0, 0, 0),
        ("code", 1): (2, 1, 1, 0),
        ("code", 2): (0, 0, 1, 0),
        ("repetition", 1): (3, 0, 1, 0),
        ("repetition", 2): (0, 0, 1, 0),
    }


def test_a_run_that_snowballs_is_warned_of_until_it_is_done(tmp_path: Path) -> None:
    run = begin(tmp_path / "run", steps=0)
    log_marks(run.folder)
    (alarm,) = run_status(run, read_log(run.folder)).alarms
    assert (alarm.name, alarm.step) == ("snowball", STEPS)
    (run.folder / "done.json").write_text("{}")
    done = read_log(run.folder)
    assert done.marks is None and run_status(run, done).alarms == ()


def test_a_training_prints_an_alarm_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_marks(tmp_path)
    settings, warned = RunSettings(study="s", arm="exgrpo", seed=3), set[str]()
    for _ in range(2):
        _warn(settings, tmp_path, warned)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("exgrpo-s3: snowball: The share with a flawed chain has risen among")


def test_a_log_that_cannot_be_read_warns_of_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log_marks(tmp_path)
    for part in (tmp_path / "log").rglob("*.parquet"):
        part.write_bytes(b"torn")
    warned: set[str] = set()
    _warn(RunSettings(study="s", arm="exgrpo", seed=3), tmp_path, warned)
    assert capsys.readouterr().out == "" and warned == set()


def test_reading_the_marks_of_sixty_thousand_trajectories_is_quick(tmp_path: Path) -> None:
    log_marks(tmp_path, steps=120, a_step=500)
    began = time.process_time()
    marks = read_log(tmp_path).marks
    took = time.process_time() - began
    assert marks is not None
    assert marks.filter(pl.col("marker") == "code")["right"].sum() == 60_000 * 7 // 8 - 60
    assert took < 1, took  # 0.1 s on an idle machine
