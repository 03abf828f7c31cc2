"""SLURM for real: a study whose jobs go through its queue, are preempted there, and go on.

Also a run on two nodes: two daemons on this machine, which SLURM takes for two.
"""

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest
from one_slurm import MISSING, can_start, free_port, one_slurm
from polars.testing import assert_frame_equal
from test_trainer import read
from test_unkillable import require_equal
from working_folder import ROOT, append, edit, exgrpo, project

from exgrpo.studies import load_study

pytest.importorskip("snakemake_executor_plugin_slurm", reason="make test-slurm installs it")
pytestmark = [pytest.mark.slurm, pytest.mark.skipif(not can_start(), reason=MISSING)]

STUDY = """
title: A study that SLURM trains in a minute
extends: smoke
arms: [exgrpo]
settings:
  questions: {test_id: 8, test_ood: 8}
  training: {steps: 24, checkpoint_every: 2}
  evaluation: {every: 24}
"""
ONE_GPU = "title: One node with what SLURM takes for a GPU\ngpus: 1\nmemory: 1.5\nhours: 0.5\n"
TWO_NODES = "title: Two nodes with a process each\nnodes: 2\nmemory: 1.5\nhours: 0.5\n"


@dataclass(frozen=True)
class Place:
    """A user's working folder, and the environment in which SLURM is found."""

    folder: Path
    environment: dict[str, str]
    run: str

    @property
    def trained(self) -> Path:
        return self.folder / "results/micro/runs" / self.run

    def attempts(self) -> list[dict[str, int]]:
        """The starts of the training, as its log lists them."""
        manifest = self.trained / "log/manifest.jsonl"
        lines = manifest.read_text().splitlines() if manifest.exists() else []
        return [line for line in map(json.loads, lines) if line["kind"] == "attempt"]

    def step(self) -> int:
        """Of the newest checkpoint."""
        found = self.trained.glob("checkpoints/step-*.pt")
        return max((int(path.stem.removeprefix("step-")) for path in found), default=0)

    def asks(self, *command: str) -> str:
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    def training_job(self) -> str:
        """SLURM's number of the job that trains."""
        lines = self.asks("squeue", "--noheader", "--format=%i %k").splitlines()
        (job,) = [line.split()[0] for line in lines if "rule_train" in line]
        return job


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = project(tmp_path_factory.mktemp("cluster"))
    (folder / "config/studies/micro.yaml").write_text(STUDY)
    (folder / "config/hardware/slurm-gpu.yaml").write_text(ONE_GPU)
    (folder / "config/hardware/slurm-nodes.yaml").write_text(TWO_NODES)
    (run,) = load_study("micro", folder / "config").runs
    # The shipped profile as a user edits it: no accounting here; and a test looks more often.
    profile = Path(shutil.copytree(ROOT / "workflow/profiles/slurm", folder / "profile"))
    for line in ("slurm-status-command: squeue", "slurm-no-account: true"):
        edit(profile / "config.yaml", f"# {line}", line)
    append(profile / "config.yaml", "slurm-init-seconds-before-status-checks: 2")
    append(profile / "config.yaml", "seconds-between-status-checks: 1")
    with one_slurm(tmp_path_factory.mktemp("slurm")) as environment:
        path = f"{environment['PATH']}:{Path(sys.executable).parent}"  # where `exgrpo` is
        # Where the nodes meet: their names are no host's, as those of a real SLURM are.
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        yield Place(folder, environment | meeting | {"PATH": path}, run)


@contextmanager
def started(place: Place, *module: str) -> Iterator[subprocess.Popen[str]]:
    """A Python module at work on the study; it must end well, and is ended with the test."""
    with (place.folder / "printed.txt").open("w") as printed:
        process = subprocess.Popen(
            [sys.executable, "-m", *module],
            cwd=place.folder, env=place.environment, text=True, stdout=printed, stderr=printed,
        )  # fmt: skip
    try:
        yield process
        assert process.wait(timeout=400) == 0, said(place)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=60)


def said(place: Place) -> str:
    return (place.folder / "printed.txt").read_text()


def wait_until(reached: Callable[[], bool], process: subprocess.Popen[str], place: Place) -> None:
    deadline = time.monotonic() + 400
    while not reached():
        assert process.poll() is None and time.monotonic() < deadline, said(place)
        time.sleep(0.1)


def test_a_study_goes_through_the_queue_and_its_preempted_training_goes_on(place: Place) -> None:
    command = ["reproduce", "micro", "--hardware", "slurm-gpu", "--profile", "profile"]
    with started(place, "pipeline.cli", *command) as process:
        wait_until(lambda: place.step() > 0, process, place)
        first = place.training_job()
        asked = place.asks("scontrol", "show", "job", first)
        for part in ("gres:gpu:1", "MinMemoryNode=1500M", "TimeLimit=00:30:00", "NumNodes=1"):
            assert part in asked, asked

        # Its time is up (the profile's `--signal`), or a grace time begins: saved, queued anew.
        place.asks("scancel", "--signal=TERM", first)
        wait_until(lambda: len(place.attempts()) == 2, process, place)
        second = place.training_job()
        assert second != first, "Snakemake queued another"

        # Preempted without grace: killed, and back in the queue under the same number.
        saved = place.step()
        wait_until(lambda: place.step() > saved, process, place)
        place.asks("scontrol", "requeue", second)
        wait_until(lambda: len(place.attempts()) == 3, process, place)
        assert place.training_job() == second

    assert "Study micro: complete." in said(place) and "Trying to restart job" in said(place)
    (log,) = place.folder.glob(f".snakemake/slurm_logs/rule_train/*/{first}.log")
    assert log.read_text().count("preempted: ") == 1
    starts = place.attempts()
    assert [start["attempt"] for start in starts] == [1, 2, 3]
    assert 0 < starts[1]["resumed_from"] < starts[2]["resumed_from"] < 24


def trained_here(place: Place, folder: Path) -> Path:
    """The same run from the same base model and questions, here and in one go."""
    for name in ("config", "results/micro/base", "results/micro/questions"):
        shutil.copytree(place.folder / name, folder / name)
    done = exgrpo(folder, "train", "--study", "micro", "--run", place.run)
    assert done.returncode == 0, done.stderr
    return folder / "results/micro/runs" / place.run


def test_it_ends_like_a_run_that_was_trained_here_and_so_does_one_of_two_nodes(
    place: Place, tmp_path: Path
) -> None:
    here = trained_here(place, tmp_path)
    require_equal(place.trained, here)
    shutil.rmtree(place.trained)
    target = str((place.trained / "done.json").relative_to(place.folder))
    command = ["--snakefile", str(ROOT / "workflow/Snakefile"), "--nolock", "--profile", "profile"]
    settings = ["--config", "study=micro", "hardware=slurm-nodes"]
    with started(place, "snakemake", *command, *settings, "--", target) as process:
        wait_until(lambda: bool(place.attempts()), process, place)
        assert "NumNodes=2" in place.asks("scontrol", "show", "job", place.training_job())
    # Later a token that rounding decides may fall otherwise, and then all is another story.
    for table, columns in (("trajectories", ["question", "response"]), ("steps", ["step", "loss"])):
        found, known = (
            read(each, table).filter(pl.col("step") <= 6).select(columns).sort(columns)
            for each in (place.trained, here)
        )
        assert_frame_equal(found, known, rel_tol=0, abs_tol=1e-6)
    assert "2 nodes" in json.loads((place.trained / "run.json").read_text())["hardware"]
