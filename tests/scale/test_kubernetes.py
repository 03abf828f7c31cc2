"""The profiles with Snakemake's plugins for clusters, without a cluster.

Kubernetes: `kubectl` is a stand-in that runs each job's container on this machine. What Kubernetes
itself would do was not tried.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from working_folder import ROOT, append, planned_jobs, project

pytest.importorskip("snakemake_executor_plugin_cluster_generic", reason="needs `make test-slurm`")
pytestmark = pytest.mark.slurm

PROFILES = ROOT / "workflow/profiles"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path)


@pytest.mark.parametrize("profile", ["slurm", "kubernetes"])
def test_a_profile_is_a_plan_for_every_job(folder: Path, profile: str) -> None:
    options = ("--profile", str(PROFILES / profile))
    assert planned_jobs(folder, "smoke", ROOT / "workflow", *options) == planned_jobs(
        folder, "smoke"
    )


KUBECTL = f"""#!{sys.executable}
import json, os, pathlib, subprocess, sys
jobs = pathlib.Path(os.environ["JOBS"])
if sys.argv[1] == "create":
    job = json.load(sys.stdin)
    (container,) = job["spec"]["template"]["spec"]["containers"]
    done = subprocess.run(
        container["command"], cwd=container["workingDir"], start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    job["code"] = done.returncode
    (jobs / job["metadata"]["name"]).write_text(json.dumps(job))
elif sys.argv[1:3] == ["get", "job"]:
    job = json.loads((jobs / sys.argv[3]).read_text())
    print("Failed FailureTarget" if job["code"] else "Complete SuccessCriteriaMet")
"""


@pytest.fixture
def cluster(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the jobs that `kubectl` was given."""
    tools, jobs = folder / "tools", folder / "jobs"
    tools.mkdir()
    jobs.mkdir()
    (tools / "kubectl").write_text(KUBECTL)
    (tools / "kubectl").chmod(0o755)
    monkeypatch.setenv("JOBS", str(jobs))
    path = f"{tools}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    return jobs


def test_the_kubernetes_profile_makes_jobs_of_training_and_evaluation(
    folder: Path, cluster: Path
) -> None:
    (folder / "config/hardware/gpu.yaml").write_text("title: t\ngpus: 1\nmemory: 2\nhours: 1\n")
    (folder / "config/studies/micro.yaml").write_text(
        "title: t\nextends: smoke\narms: [exgrpo]\nsettings: {training: {steps: 2}}\n"
    )
    profile = Path(shutil.copytree(PROFILES / "kubernetes", folder / "profile"))
    append(profile / "config.yaml", "seconds-between-status-checks: 1")
    done = subprocess.run(
        [sys.executable, "-m", "pipeline.cli", "reproduce", "micro",
         "--hardware", "gpu", "--profile", "profile"],
        cwd=folder, env=os.environ | {"CUDA_VISIBLE_DEVICES": "0"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    made = [json.loads(path.read_text()) for path in cluster.iterdir()]
    rules = sorted(job["metadata"]["name"].split("-")[1] for job in made)
    assert rules == ["evaluate", "evaluate", "train"]
    for job in made:
        pod = job["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        wanted = {"cpu": 1, "memory": "2000M", "nvidia.com/gpu": 1}
        assert container["resources"] == {"requests": wanted, "limits": wanted}
        assert pod["activeDeadlineSeconds"] == 3600
        assert pod["volumes"] and container["volumeMounts"]
