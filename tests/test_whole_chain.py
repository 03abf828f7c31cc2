"""The whole chain of study `smoke`: run in one go, again, in parts, stopped, and changed.

Everything runs through the real `exgrpo` in a folder of its own with a copy of `config/`.
"""

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
from working_folder import ROOT, SMOKE, append, edit, exgrpo, planned_jobs, project

from exgrpo.studies import load_study

pytestmark = pytest.mark.slow


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


def nothing_is_done(folder: Path, *options: str) -> bool:
    """Whether a call of `exgrpo reproduce smoke` finds all done, and touches no file."""

    def times() -> dict[Path, int]:
        files = (folder / "results").rglob("*")
        return {path: path.stat().st_mtime_ns for path in files if path.name != ".lock"}

    before = times()
    done = exgrpo(folder, "reproduce", "smoke", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    return "Nothing to be done" in done.stderr and times() == before


def test_o35_a_second_call_does_nothing(unbroken: Path) -> None:
    assert nothing_is_done(unbroken)
    assert nothing_is_done(unbroken, "--finished")
    assert nothing_is_done(unbroken, "--hardware", "two-processes")


def test_what_is_finished_is_reported_and_the_rest_goes_on(unbroken: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(unbroken, tmp_path / "partial", symlinks=True))
    append(folder / SMOKE, "companions: [other]")  # none of its runs is finished: left out
    (folder / "config/studies/other.yaml").write_text("title: t\nextends: smoke")
    results = folder / "results"
    _, missing = load_study("smoke", folder / "config").runs
    for made in (f"runs/{missing}/done.json", "catalog.json", "report.html", "summary.txt"):
        (results / "smoke" / made).unlink()
    (results / "lake/entries" / f"{missing}.json").unlink()
    for made in (f"evaluations/{missing}", "analyses", "figures"):
        shutil.rmtree(results / "smoke" / made)

    done = exgrpo(folder, "reproduce", "smoke", "--finished")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Study smoke: 1 of 2 runs." in done.stdout
    assert "partial, 1 of 2 runs" in (results / "smoke/report.html").read_text()
    summary = [line.split() for line in (results / "smoke/summary.txt").read_text().splitlines()]
    assert ["exgrpo", "0", "of", "1"] in [words[:4] for words in summary]
    assert not (results / "smoke/runs" / missing / "done.json").exists()
    assert not (results / "other").exists()
    assert nothing_is_done(folder, "--finished")

    jobs = planned_jobs(folder, "smoke")
    anew = ("train", "evaluate", "lake", "catalog", "analyse", "figures", "report", "summary")
    assert {rule: jobs.get(rule) for rule in jobs if rule not in ("all", "total")} == dict.fromkeys(
        anew, 1
    )
    edit(folder / SMOKE, "companions: [other]\n", "")
    assert exgrpo(folder, "reproduce", "smoke").returncode == 0
    assert lake_rows(folder) == lake_rows(unbroken)
    assert "whole, all 2 runs" in (results / "smoke/summary.txt").read_text()
    assert nothing_is_done(folder, "--finished")


def test_a_run_is_not_trained_before_the_run_it_needs(unbroken: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(unbroken, tmp_path / "needs", symlinks=True))
    edit(folder / SMOKE, "[on_policy, exgrpo]", "[rlep, continual, on_policy]")
    edit(folder / SMOKE, "  training: {", "  training: {keep_best: true, ")
    study = load_study("smoke", folder / "config")
    runs = {settings.arm: run for run, settings in study.runs.items()}
    for arm, part in (("continual", "best"), ("rlep", "log")):
        done = exgrpo(folder, "train", "--study", "smoke", "--run", runs[arm])
        assert done.returncode == 2
        assert f"results/smoke/runs/{runs['on_policy']}/{part}: missing" in done.stderr
        assert f"Train run {runs['on_policy']!r} first" in done.stderr
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {
        arm: json.loads((folder / "results/smoke/runs" / run / "run.json").read_text())
        for arm, run in runs.items()
    }
    for arm in ("continual", "rlep"):
        assert rows[arm]["started"] >= rows["on_policy"]["finished"]


def test_a_changed_setting_makes_anew_only_what_depends_on_it(
    unbroken: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(unbroken, tmp_path / "changed", symlinks=True))
    edit(folder / SMOKE, "[on_policy, exgrpo]", "[on_policy, exgrpo, shortest]")
    jobs = planned_jobs(folder, "smoke")
    assert (jobs["train"], jobs["evaluate"], jobs["lake"]) == (1, 1, 1)
    assert "base_model" not in jobs
    edit(folder / SMOKE, "pretraining: {steps: 60}", "pretraining: {steps: 61}")
    jobs = planned_jobs(folder, "smoke")
    assert (jobs["base_model"], jobs["train"], jobs["evaluate"]) == (1, 3, 4)
    assert jobs["questions"] == 1, "the base model's tokenizer makes the prompts"


@pytest.mark.parametrize(
    ("path", "made_anew"),
    [
        ("claims.yaml", {"analyse", "figures", "report", "summary"}),
        ("statements.yaml", {"analyse", "figures", "report", "summary"}),
        ("paper/scores.csv", {"analyse", "figures", "report", "summary"}),
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


def test_o31_an_interrupted_and_a_killed_run_end_like_an_unbroken_one(
    unbroken: Path, tmp_path: Path
) -> None:
    folder = project(tmp_path)
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
