"""Runs that are being trained, in SQL and on the screen: seen early, and left undisturbed."""

import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from hostile_sql import hostile_statements
from lake_fixture import STEPS, STUDY, DemoResults
from polars.testing import assert_frame_equal
from screens import open_screen, texts
from test_status import begin, log_steps, tree
from test_trainer import read

from analysis import compaction
from analysis.catalog import open_catalog
from analysis.errors import UserError as AnalysisError
from analysis.live import statuses
from analysis.queries import ask
from exgrpo.errors import UserError
from exgrpo.studies import Study, load_study
from exgrpo.tables import DERIVED, RUNS, TABLES
from exgrpo.tables.manifest import listed_parts
from exgrpo.tables.schema import Table
from pipeline import live_catalog as live_module
from pipeline.base_model import make_base_model
from pipeline.files import run_folder
from pipeline.live_catalog import Source, live_catalog
from pipeline.questions import make_questions
from pipeline.sql import Output, print_answer
from pipeline.study import write_study
from pipeline.train import _only_process

ROOT = Path(__file__).resolve().parents[1]
Captured = pytest.CaptureFixture[str]
TRAINED = 20  # steps
Seen = list[tuple[str, int, int | None]]
LITTLE = {
    "title": "little",
    "arms": ["exgrpo"],
    "seeds": [0, 1],
    "settings": {
        "questions": {"train": 16, "validation": 2, "test_id": 2, "test_ood": 2},
        "base": {"pretraining": {"steps": 30, "width": 32, "layers": 2, "heads": 2}},
        "batch": {"questions": 4, "micro_batch_tokens": 400},
        "rollout": {"group_size": 4, "max_new_tokens": 24},
        "experience": {"start": "at_once"},
        "training": {"steps": TRAINED, "checkpoint_every": 2},
        "evaluation": {"every": 50, "validation_samples": 1, "test_samples": 1},
    },
}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working folder with config and results of a little study: all but its training is done."""
    folder = tmp_path_factory.mktemp("little")
    (folder / "config" / "studies").mkdir(parents=True)
    (folder / "config" / "arms").symlink_to(ROOT / "config" / "arms")
    (folder / "config" / "studies" / "little.yaml").write_text(yaml.safe_dump(LITTLE))
    made = study(folder)
    write_study(made, folder / "results")
    make_base_model(made, folder / "results", threads=1)
    make_questions(made, folder / "results")
    return folder


def study(folder: Path) -> Study:
    return load_study("little", folder / "config")


@contextmanager
def training(folder: Path, run: str) -> Iterator[subprocess.Popen[str]]:
    """The real `exgrpo train` of a run, in a process of its own."""
    arguments = ["train", "--study", "little", "--run", run, "--config", str(folder / "config")]
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    command += ["--results", str(folder / "results")]
    process = subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def watched(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Seen]:
    """Results of a run that nobody read and of one that was read all along, and what was seen."""
    alone, read_along = (tmp_path_factory.mktemp(name) / "w" for name in ("alone", "read"))
    seen: Seen = []
    run = next(iter(study(prepared).runs))
    for folder in (alone, read_along):
        shutil.copytree(prepared, folder, symlinks=True)
        with training(folder, run) as process:
            while folder is read_along and process.poll() is None:
                seen.append(look(folder / "results", run))
            assert process.wait(timeout=300) == 0, process.stdout and process.stdout.read()
    return alone / "results", read_along / "results", seen


def look(results: Path, run: str) -> tuple[str, int, int | None]:
    """State and step by status, and the newest step by SQL."""
    status = next(each for each in statuses(results) if each.run == run)
    with live_catalog(results) as connection:
        newest = ask(connection, f"SELECT max(step) FROM steps WHERE run = '{run}'").frame.item()
    return status.state, status.step, newest


def test_a_run_is_seen_early_and_is_none_the_worse_for_it(
    watched: tuple[Path, Path, Seen],
) -> None:
    alone, read_along, seen = watched
    run = next(iter(statuses(alone))).run
    early = [(step, newest) for state, step, newest in seen if state == "running" and newest]
    assert any(0 < step < TRAINED for step, _ in early)
    assert any(0 < newest < TRAINED for _, newest in early)
    assert all(step <= newest for step, newest in early)
    steps = [newest or 0 for _, _, newest in seen]
    assert steps == sorted(steps)
    left, right = (results / "little" / "runs" / run for results in (alone, read_along))
    for table in ("trajectories", "tokens", "steps", "candidates", "experience", "evaluations"):
        assert_frame_equal(read(left, table), read(right, table), check_exact=True)
    assert parts(left) == parts(right)
    names = [sorted(path.name for path in folder.iterdir()) for folder in (left, right)]
    assert names[0] == names[1]


def parts(folder: Path) -> list[tuple[str, int]]:
    """Path and rows of every part that was ever listed, those of other attempts too."""
    return [(part.path, part.rows) for part in listed_parts(folder / "log")]


def test_a_real_training_raises_no_alarm(watched: tuple[Path, Path, Seen]) -> None:
    done, waiting = statuses(watched[1])
    assert (done.state, done.step, done.checkpoint) == ("done", TRAINED, TRAINED)
    assert done.alarms == () and done.notes == ()
    assert done.steps_a_second is not None and done.tokens_a_second is not None
    assert waiting.state == "waiting"


@pytest.fixture
def live(own: DemoResults) -> DemoResults:
    """The made-up study; its first run is not in the lake yet, and goes on after step 4."""
    run = next(iter(own.study.runs))
    (own.results / "lake" / "entries" / f"{run}.json").unlink()
    for left in (own.results / "lake").glob(f"*/{run}.parquet"):
        left.unlink()
    return own


def count(results: Path, sql: str) -> object:
    with live_catalog(results) as connection:
        return ask(connection, sql).frame.item()


def test_tables_are_those_of_the_catalog_with_live_rows(
    live: DemoResults, demo: DemoResults
) -> None:
    described = (
        "SELECT table_name, column_name, data_type, comment FROM duckdb_columns() ORDER BY ALL"
    )
    in_order = 'FROM visits ORDER BY run, step, "group"'
    with live_catalog(live.results) as connection:
        for name in TABLES.keys() - {"tokens"} - {table.name for table in DERIVED}:
            rows = ask(connection, f"SELECT count(*) FROM {name}").frame.item()
            assert rows == len(demo.rows.get(name, [])), name
        found = ask(connection, described, 10_000).frame
        visits = ask(connection, in_order).frame
        with pytest.raises(AnalysisError, match="tokens does not exist"):
            ask(connection, "FROM tokens")
    with open_catalog(demo.catalog) as connection:
        assert_frame_equal(found, ask(connection, described, 10_000).frame)
        assert_frame_equal(visits, ask(connection, in_order).frame)


def test_nothing_is_written_beside_a_run_and_nothing_is_left(
    live: DemoResults, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    run = next(iter(live.study.runs))
    with _only_process(run_folder(live.study, run, live.results)):
        before = tree(live.results)
        assert count(live.results, f"SELECT max(step) FROM steps WHERE run = '{run}'") == STEPS
        assert tree(live.results) == before
    assert list((tmp_path / "temporary").iterdir()) == []


def test_hostile_sql_is_refused_live_too(live: DemoResults) -> None:
    before = tree(live.results)
    with live_catalog(live.results) as connection:
        for sql in hostile_statements(live.results):
            with pytest.raises(AnalysisError):
                ask(connection, sql)
        assert ask(connection, "SELECT count(*) FROM runs").frame.item() == 5
    assert tree(live.results) == before


def test_a_run_row_comes_from_its_own_file(live: DemoResults) -> None:
    run = next(iter(live.study.runs))
    path = run_folder(live.study, run, live.results) / "run.json"
    row = json.loads(path.read_text())
    path.write_text(json.dumps(row | {"steps": 4, "status": "stopped", "reason": "a loss"}))
    found = f"FROM runs SELECT status || steps WHERE run = '{run}'"
    assert count(live.results, found) == "stopped4"
    assert set(row) <= set(RUNS.names)


def test_an_overtaken_part_and_a_torn_line_do_not_count(live: DemoResults) -> None:
    run = next(iter(live.study.runs))
    folder = run_folder(live.study, run, live.results)
    log_steps(folder, 8, resumed_from=4, reward=0.25)
    with (folder / "log" / "manifest.jsonl").open("a") as manifest:
        manifest.write('{"kind": "attempt", "att')
    which = f"FROM steps SELECT count(*) || ' ' || max(step) WHERE run = '{run}'"
    assert count(live.results, which) == "8 8"
    assert count(live.results, f"FROM steps SELECT min(reward) WHERE run='{run}' AND step > 4") == (
        0.25
    )


def test_parts_of_another_version_are_left_out_and_said(
    live: DemoResults, capsys: Captured
) -> None:
    run = next(iter(live.study.runs))
    manifest = run_folder(live.study, run, live.results) / "log" / "manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True)
    foreign = [
        line.replace('"schema_version": ', '"schema_version": 9') if '"steps"' in line else line
        for line in lines
    ]
    manifest.write_text("".join(foreign))
    assert count(live.results, f"FROM steps SELECT count(*) WHERE run = '{run}'") == 0
    assert count(live.results, f"FROM trajectories SELECT count(*) WHERE run = '{run}'") != 0
    assert f"left out: {run}: 3 parts of schema version 9" in capsys.readouterr().err


def test_a_damaged_log_is_left_out_said_and_stops_no_other(
    live: DemoResults, capsys: Captured
) -> None:
    run = next(iter(live.study.runs))
    log = run_folder(live.study, run, live.results) / "log"
    next((log / "steps").glob("*.parquet")).unlink()
    assert count(live.results, "FROM steps SELECT count(DISTINCT run)") >= 3
    assert f"left out: {run}: " in (said := capsys.readouterr().err) and "missing" in said
    why = count(live.results, f"FROM catalog_info SELECT left_out WHERE entry = '{run}'")
    assert "missing" in str(why)
    shutil.rmtree(log)
    shutil.rmtree(live.results / STUDY / "evaluations" / run)
    found = f"FROM catalog_info SELECT count(*) WHERE entry = '{run}'"
    assert count(live.results, found) == 0


def test_a_log_that_comes_and_goes_is_no_error(live: DemoResults) -> None:
    run = next(iter(live.study.runs))
    log = run_folder(live.study, run, live.results) / "log"
    kept, over = log.with_name("kept"), threading.Event()
    log.rename(kept)

    def churn() -> None:
        while not over.is_set():
            shutil.copytree(kept, log)
            time.sleep(0.01)
            shutil.rmtree(log)

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        sql = f"FROM steps SELECT count(*) WHERE run = '{run}'"
        seen = {count(live.results, sql) for _ in range(8)}
    finally:
        over.set()
        writer.join()
    assert seen <= {0, 2, 4, STEPS}, "of parts of two steps, each as a whole"


def test_a_torn_part_is_read_again(live: DemoResults, monkeypatch: pytest.MonkeyPatch) -> None:
    check, parts, torn = compaction._check_part, live_module._parts, []

    def tear(path: Path, table: Table) -> int:
        content, rows = path.read_bytes(), check(path, table)
        if table.name == "steps" and len(torn) < 2:
            torn.append((path, content))
            path.write_bytes(b"PAR1")
        return rows

    def look_again(source: Source) -> dict[str, list[Path]]:
        for path, content in torn:
            path.write_bytes(content)
        return parts(source)

    monkeypatch.setattr(compaction, "_check_part", tear)
    monkeypatch.setattr(live_module, "_parts", look_again)
    found = count(live.results, "FROM steps SELECT count(*)")
    assert (found, len(torn)) == (STEPS * len(live.study.runs), 2)


def test_without_a_catalog_live_is_named_and_works(live: DemoResults, capsys: Captured) -> None:
    live.catalog.unlink()
    shutil.rmtree(live.results / "lake")
    with pytest.raises(AnalysisError, match="exgrpo sql --live"):
        print_answer(live.results, "SELECT 1")
    print_answer(live.results, "SELECT count(*) AS n FROM steps", Output("csv"), live=True)
    captured = capsys.readouterr()
    assert captured.out == f"n\n{STEPS * len(live.study.runs)}\n"
    assert captured.err.startswith("live: ")
    assert not live.catalog.exists()


def test_where_there_is_nothing_live_says_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="neither a lake nor a log"), live_catalog(tmp_path):
        pass
    with pytest.raises(AnalysisError, match="exgrpo catalog") as error:
        print_answer(tmp_path, "SELECT 1")
    assert "--live" not in str(error.value)


# The screen


def test_the_screen_says_when_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (tmp_path, tmp_path / "missing"):
        monkeypatch.setenv("EXGRPO_RESULTS", str(folder))
        test = open_screen("live")
        assert "Nothing is being trained" in test.info[0].value
        assert "make reproduce" in test.info[0].value


def test_the_screen_shows_a_running_study_before_any_catalog(
    prepared: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    logging.getLogger("streamlit").propagate = True
    shutil.copytree(prepared, tmp_path / "w", symlinks=True)
    results = tmp_path / "w" / "results"
    monkeypatch.setenv("EXGRPO_RESULTS", str(results))
    run = next(iter(study(prepared).runs))
    with training(tmp_path / "w", run) as process:
        while not statuses(results)[0].step:
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGSTOP)  # it stays as it is while we look
        test = open_screen("live")
    table = test.dataframe[0].value
    assert table["run"].to_list() == list(study(prepared).runs)
    assert table["state"].to_list() == ["running", "waiting"]
    assert len(test.get("plotly_chart")) >= 3
    assert "deprecat" not in caplog.text and "default value" not in caplog.text
    assert test.error == [] and "Nothing is being trained now" not in texts(test)


def test_the_address_restores_the_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    for name in ("one", "two"):
        begin(tmp_path / name / "runs" / name)
        settings = {"study": name, "arm": "a", "training": {"steps": 40}}
        (tmp_path / name / "runs" / name / "settings.json").write_text(json.dumps(settings))
    os.utime(tmp_path / "two" / "runs" / "two" / "log" / "manifest.jsonl", (1, 1))
    assert open_screen("live").selectbox[0].value == "one", "the one that wrote last"
    test = open_screen("live", study="two")
    assert test.selectbox[0].value == "two"
    assert test.dataframe[0].value["run"].to_list() == ["two"]
    assert "Nothing is being trained now" in texts(test)
    test.selectbox[0].set_value("one").run()
    assert test.query_params["study"] == "one"
    elsewhere = open_screen("live", study="three")  # an import, chosen on another screen
    assert not elsewhere.warning
    assert any("here is one that has" in said.value for said in elsewhere.caption)


def test_what_is_wrong_stands_at_the_top_as_plain_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path))
    run = begin(tmp_path / "s" / "runs" / "bad", steps=5)
    log_steps(run.folder, 20, resumed_from=5, signal_groups=0, loss=float("nan"))
    reason = "the loss is <img src=x onerror=alert(1)> :red[no]"
    (run.folder / "run.json").write_text(json.dumps({"status": "stopped", "reason": reason}))
    test = open_screen("live")
    assert "What went wrong" in test.error[0].value
    said = test.code[0].value
    assert reason in said
    assert "The loss of step 6 is nan." in said and "last 15 steps, to step 20" in said
    assert not [item for item in test.markdown if "onerror" in item.value]
