"""The workflow and the command line: dry runs, bad input, one call at a time, and the whole chain.

Everything runs through the real `exgrpo` in a folder of its own with a copy of `config/`.
"""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from exgrpo.settings import load_study

ROOT = Path(__file__).resolve().parents[1]
STUDIES = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path)


def project(folder: Path) -> Path:
    """A working folder with the shipped studies and arms, and no results."""
    shutil.copytree(ROOT / "config", folder / "config")
    return folder


def exgrpo(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.cli", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True)


def snakemake(
    folder: Path, *arguments: str, workflow: Path = ROOT / "workflow"
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(workflow / "Snakefile")]
    return subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True)


def planned_jobs(
    folder: Path, study: str, workflow: Path = ROOT / "workflow", *options: str
) -> dict[str, int]:
    """Jobs that a dry run would do, by rule."""
    arguments = ("--dry-run", "--nolock", "--cores", "2", *options, "--config", f"study={study}")
    done = snakemake(folder, *arguments, workflow=workflow)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return {line[0]: int(line[1]) for line in lines if len(line) == 2 and line[1].isdigit()}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


# Plans


def test_snakemakes_own_lint_is_clean(folder: Path) -> None:
    done = snakemake(folder, "--lint")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("study", STUDIES)
def test_every_shipped_study_has_a_plan(folder: Path, study: str) -> None:
    jobs = planned_jobs(folder, study)
    runs = len(load_study(study, ROOT / "config").runs)
    one_of_each = ("questions", "base_model", "catalog", "analyse", "figures", "report", "summary")
    assert [jobs[rule] for rule in one_of_each] == [1] * len(one_of_each)
    assert (jobs["train"], jobs["evaluate"], jobs["lake"]) == (runs, runs + 1, runs + 2)


# The command line


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    heavy = "{'torch', 'polars', 'pyarrow', 'duckdb', 'transformers', 'pydantic'}"
    code = f"import sys, pipeline.cli; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


SMOKE = "config/studies/smoke.yaml"
MISTAKES = {
    "study": ("", "", "", ["unknown study 'smok'", "Did you mean 'smoke'?"]),
    "arm": (SMOKE, "exgrpo]", "exgrppo]", [SMOKE, "unknown arm 'exgrppo'", "mean 'exgrpo'?"]),
    "key": (
        SMOKE,
        "test_samples: 2",
        "test_sample: 2",
        [SMOKE, "`settings.evaluation.test_sample`", "value 2", "mean 'test_samples'?"],
    ),
    "type": (SMOKE, "steps: 6,", "steps: six,", [SMOKE, "`settings.training.steps`", "'six'"]),
    "range": (SMOKE, "start: 0.0", "start: 2.5", [SMOKE, "`settings.experience.start`", "2.5"]),
    "yaml": (SMOKE, "seeds: [0]", "seeds: [0", [SMOKE, "no valid YAML", "line"]),
    "arm key": (
        "config/arms/exgrpo.yaml",
        "choice:",
        "choise:",
        ["config/arms/exgrpo.yaml", "`settings.experience.choise`", "mean 'choice'?"],
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_study_is_told_before_anything_starts(folder: Path, mistake: str) -> None:
    path, old, new, expected = MISTAKES[mistake]
    if path:
        edit(folder / path, old, new)
    done = exgrpo(folder, "reproduce", "smoke" if path else "smok")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.stderr
    assert [part for part in expected if part not in done.stderr] == []
    assert not (folder / "results").exists()


def test_one_call_at_a_time(folder: Path) -> None:
    (folder / "results").mkdir()
    with (folder / "results" / ".lock").open("w") as lock:
        lock.write("4321")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 2
    assert "results/.lock" in done.stderr
    assert "process 4321" in done.stderr
    assert [path.name for path in (folder / "results").iterdir()] == [".lock"]


def test_a_full_disk_is_told_before_anything_starts(folder: Path) -> None:
    (folder / "results" / "smoke").mkdir(parents=True)
    (folder / "results" / "smoke" / "study.json.tmp").symlink_to("/dev/full")
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 2
    assert done.stderr.startswith("error: results/smoke/study.json: cannot write: No space left")
    assert not (folder / "results" / "smoke" / "study.json").exists()


def test_a_full_disk_anywhere_is_told_in_a_line() -> None:
    command = [sys.executable, "-m", "pipeline.cli", "--help"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command, stdout=full, stderr=subprocess.PIPE, text=True, env=environment
        )
    assert done.returncode == 2
    assert done.stderr == "error: No space left on device. Free some, run the same again.\n"


def test_a_failing_step_has_the_last_word_with_its_log(folder: Path) -> None:
    edit(folder / SMOKE, "pretraining: {steps: 60}", "path: models/nowhere")
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 1
    last_words = done.stderr[done.stderr.index("Study smoke: not complete.") :]
    assert "results/smoke/logs/" in last_words
    assert "error: " in last_words
    assert "models/nowhere" in last_words
    assert not list((folder / "results" / "smoke").rglob("done.json"))


# The whole chain


def lake_rows(folder: Path) -> dict[str, int]:
    """Rows of every table and entry, as the lake's entries list them."""
    rows: Counter[str] = Counter()
    for path in (folder / "results" / "lake" / "entries").glob("*.json"):
        for table, part in json.loads(path.read_text())["tables"].items():
            rows[f"{path.stem} {table}"] += part["rows"]
    return dict(rows)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The working folder of study `smoke`, run in one go."""
    folder = project(tmp_path_factory.mktemp("unbroken"))
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exgrpo sql" in done.stdout
    assert (folder / "results/smoke/summary.txt").read_text() in done.stdout
    return folder


@pytest.mark.slow
def test_smoke_ends_with_every_artefact(unbroken: Path) -> None:
    study = load_study("smoke", unbroken / "config")
    results = unbroken / "results"
    for name in (
        "study.json",
        "catalog.json",
        "report.html",
        "summary.txt",
        "snakemake-report.html",
    ):
        assert (results / "smoke" / name).stat().st_size > 0
    for name in ("analyses", "figures"):
        assert any((results / "smoke" / name).iterdir())
    entries = {path.stem for path in (results / "lake" / "entries").glob("*.json")}
    assert entries == {"questions-smoke", study.base_run, *study.runs}

    with duckdb.connect(str(results / "workbench.duckdb"), read_only=True) as connection:
        trajectories = connection.sql(
            "select run, count(*) from trajectories group by run"
        ).fetchall()
        evaluated = connection.sql("select distinct run from evaluations").fetchall()
    settings = study.any_run
    batch = settings.batch.questions * settings.rollout.group_size
    assert dict(trajectories) == dict.fromkeys(study.runs, settings.training.steps * batch)
    assert {run for (run,) in evaluated} == {study.base_run, *study.runs}


@pytest.mark.slow
def test_a_second_call_does_nothing(unbroken: Path) -> None:
    def times() -> dict[Path, int]:
        files = (unbroken / "results").rglob("*")
        return {path: path.stat().st_mtime_ns for path in files if path.name != ".lock"}

    before = times()
    again = exgrpo(unbroken, "reproduce", "smoke")
    assert again.returncode == 0
    assert "Nothing to be done" in again.stderr
    assert times() == before


@pytest.mark.slow
def test_a_changed_setting_makes_anew_only_what_depends_on_it(
    unbroken: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(unbroken, tmp_path / "changed", symlinks=True))
    edit(folder / SMOKE, "[on_policy, exgrpo]", "[on_policy, exgrpo, exgrpo_random]")
    jobs = planned_jobs(folder, "smoke")
    assert (jobs["train"], jobs["evaluate"], jobs["lake"]) == (1, 1, 1)
    assert "base_model" not in jobs
    edit(folder / SMOKE, "pretraining: {steps: 60}", "pretraining: {steps: 61}")
    jobs = planned_jobs(folder, "smoke")
    assert (jobs["base_model"], jobs["train"], jobs["evaluate"]) == (1, 3, 4)
    assert "questions" not in jobs


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "made_anew"),
    [
        ("claims.yaml", {"analyse", "figures", "report", "summary"}),
        ("sql/buckets.sql", {"analyse", "figures", "report", "summary"}),
        ("templates/report.html.j2", {"report"}),
    ],
)
def test_a_changed_ledger_query_or_template_makes_anew_what_shows_it(
    unbroken: Path, tmp_path: Path, path: str, made_anew: set[str]
) -> None:
    folder = Path(shutil.copytree(unbroken, tmp_path / "changed", symlinks=True))
    code = tmp_path / "code"
    for part in ("workflow", "analysis"):
        shutil.copytree(ROOT / part, code / part)

    def plan() -> dict[str, int]:
        # Only by time: the copy has other paths than the checkout.
        return planned_jobs(folder, "smoke", code / "workflow", "--rerun-triggers", "mtime")

    assert plan() == {}
    (code / "analysis" / path).touch()
    assert plan().keys() - {"all", "total"} == made_anew


@pytest.mark.slow
def test_an_interrupted_and_a_killed_run_end_like_an_unbroken_one(
    unbroken: Path, folder: Path
) -> None:
    runs = folder / "results" / "smoke" / "runs"

    def attempts() -> list[dict[str, int]]:
        manifests = [path.read_text() for path in runs.glob("*/log/manifest.jsonl")]
        lines = [json.loads(line) for text in manifests for line in text.splitlines()]
        return [line for line in lines if line["kind"] == "attempt"]

    def latest_attempt() -> int:
        return max(attempt["attempt"] for attempt in attempts())

    stopped = start_until(folder, lambda: any(runs.glob("*/checkpoints/*.pt")), signal.SIGINT)
    assert stopped.returncode == 130
    assert "run the same command again" in stopped.stderr
    assert not all((run / "done.json").exists() for run in runs.iterdir())

    start_until(folder, lambda: latest_attempt() > 1, signal.SIGKILL)
    assert not all((run / "done.json").exists() for run in runs.iterdir())

    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    assert latest_attempt() > 2
    assert any(attempt["resumed_from"] > 0 for attempt in attempts())
    assert lake_rows(folder) == lake_rows(unbroken)


def start_until(
    folder: Path, reached: Callable[[], bool], stop: signal.Signals
) -> subprocess.CompletedProcess[str]:
    """Start `exgrpo reproduce smoke` and signal its whole process group once `reached()`."""
    command = [sys.executable, "-m", "pipeline.cli", "reproduce", "smoke"]
    with (folder / "out.txt").open("w") as out, (folder / "err.txt").open("w") as err:
        process = subprocess.Popen(
            command, cwd=folder, stdout=out, stderr=err, start_new_session=True
        )
        deadline = time.monotonic() + 300
        while not reached():
            assert process.poll() is None, (folder / "err.txt").read_text()
            assert time.monotonic() < deadline, (folder / "err.txt").read_text()
            time.sleep(0.02)
        os.killpg(process.pid, stop)
        code = process.wait(timeout=60)
    out_text, err_text = ((folder / name).read_text() for name in ("out.txt", "err.txt"))
    return subprocess.CompletedProcess(command, code, out_text, err_text)
