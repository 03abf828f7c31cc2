"""The workflow and the command line: dry runs, bad input, one call at a time.

Everything runs through the real `exgrpo` in a folder of its own with a copy of `config/`.
"""

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from working_folder import ROOT, SMOKE, append, edit, exgrpo, planned_jobs, project, snakemake

from exgrpo.studies import load_study

STUDIES = sorted(path.stem for path in (ROOT / "config" / "studies").glob("*.yaml"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path)


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


def test_a_run_is_planned_after_the_run_it_needs(folder: Path) -> None:
    edit(folder / SMOKE, "[on_policy, exgrpo]", "[continual, on_policy, exgrpo]")
    edit(folder / SMOKE, "  training: {", "  training: {keep_best: true, ")
    study = load_study("smoke", folder / "config")
    runs = {settings.arm: run for run, settings in study.runs.items()}
    for arm, trained in (("continual", 2), ("exgrpo", 1)):
        target = f"results/smoke/runs/{runs[arm]}/done.json"
        assert planned_jobs(folder, "smoke", ROOT / "workflow", target)["train"] == trained


def test_o21_only_the_run_that_is_missing_is_trained(folder: Path) -> None:
    """Of four runs 0, 2 and 3 ended, the last one first: what is left is no matter of counting."""
    edit(folder / SMOKE, "[on_policy, exgrpo]", "[on_policy, exgrpo, shortest, highest_entropy]")
    results = folder / "results" / "smoke"
    planned_jobs(folder, "smoke")  # writes study.json, as every call does
    first, missing, *others = load_study("smoke", folder / "config").runs
    for stage in ("base", "questions", *(f"runs/{run}" for run in (*reversed(others), first))):
        (results / stage).mkdir(parents=True)
        (results / stage / "done.json").write_text("{}")
    for run in (first, *others):
        target = f"results/smoke/runs/{run}/done.json"
        assert planned_jobs(folder, "smoke", ROOT / "workflow", target) == {}
    target = f"results/smoke/runs/{missing}/done.json"
    assert planned_jobs(folder, "smoke", ROOT / "workflow", target)["train"] == 1
    assert planned_jobs(folder, "smoke")["train"] == 1


# The command line


def test_the_command_line_starts_without_the_heavy_libraries() -> None:
    heavy = "{'torch', 'polars', 'pyarrow', 'duckdb', 'transformers', 'pydantic'}"
    code = f"import sys, pipeline.cli; print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


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
    "range": (
        SMOKE,
        "start: 0.0",
        "start: 2.5",
        [SMOKE, "`settings.experience.start`", "'at_once' or 'never', or less than", "found 2.5"],
    ),
    "yaml": (SMOKE, "seeds: [0]", "seeds: [0", [SMOKE, "no valid YAML", "line"]),
    "arm key": (
        "config/arms/exgrpo.yaml",
        "replay:",
        "replays:",
        ["config/arms/exgrpo.yaml", "`settings.experience.replays`", "mean 'replay'?"],
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


def test_a_mistake_in_a_companion_is_told_before_anything_starts(folder: Path) -> None:
    append(folder / SMOKE, "companions: [other]")
    other = folder / "config/studies/other.yaml"
    other.write_text("title: t\nextends: smoke\nsettings: {training: {stepps: 3}}")
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 2
    assert "other.yaml: unknown key `settings.training.stepps`" in done.stderr
    assert not (folder / "results").exists()


def test_without_a_finished_run_there_is_nothing_to_report(folder: Path) -> None:
    done = exgrpo(folder, "reproduce", "smoke", "--finished")
    assert done.returncode == 2
    assert "study 'smoke': no run is finished yet" in done.stderr
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


def test_a_failing_step_has_the_last_word_and_companions_still_run(folder: Path) -> None:
    edit(folder / SMOKE, "pretraining: {steps: 60}", "path: models/nowhere")
    append(folder / SMOKE, "companions: [other]")
    (folder / "config/studies/other.yaml").write_text("title: t\nextends: smoke")
    done = exgrpo(folder, "reproduce", "smoke")
    assert done.returncode == 1
    words = re.split(r"Study (?:smoke|other): not complete\.", done.stderr)
    assert len(words) == 3
    for name, last_words in zip(("smoke", "other"), words[1:], strict=True):
        assert f"results/{name}/logs/" in last_words
        assert "error: " in last_words
        assert "models/nowhere" in last_words
        assert not list((folder / "results" / name).rglob("done.json"))
    assert "results/smoke/logs/" not in words[2]
