"""Hardware and profiles in the workflow: what each job asks for, and what is told of a mistake.

The profiles with their plugins: tests/scale/test_kubernetes.py and test_slurm.py.
"""

import subprocess
from pathlib import Path

import pytest
import yaml
from working_folder import ROOT, exgrpo, project, snakemake

from exgrpo.hardware import CPU, Hardware, load_hardware
from pipeline.scheduler import requested

HARDWARE = sorted(path.stem for path in (ROOT / "config/hardware").glob("*.yaml"))
PROFILES = ROOT / "workflow/profiles"
EIGHT = Hardware(title="t", nodes=2, gpus=8, processes=8, memory=800, hours=0.5)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return project(tmp_path)


def test_what_is_asked_for() -> None:
    assert requested(CPU) == {}
    assert requested(EIGHT) == {
        "devices": 8, "gres": "gpu:8", "tasks_per_gpu": 0,
        "nodes": 2, "tasks": 2, "mem_mb": 800_000, "runtime": 30,
    }  # fmt: skip


@pytest.mark.parametrize("name", HARDWARE)
def test_every_hardware_file_has_a_plan_with_what_it_asks_for(folder: Path, name: str) -> None:
    done = snakemake(
        folder, "--dry-run", "--nolock", "--cores", "64", "--workflow-profile", "none",
        "--config", "study=smoke", f"hardware={name}",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for job in ("rule train:", "rule evaluate:"):
        lines = done.stdout.partition(job)[2].splitlines()
        told = next(line for line in lines if "resources:" in line)
        for key, value in requested(load_hardware(name, folder / "config")).items():
            assert f"{key}={value}" in told


def test_a_profile_without_its_plugin_or_of_no_such_name_is_told(folder: Path) -> None:
    (folder / "mine").mkdir()
    (folder / "mine/config.yaml").write_text("executor: pigeons\n")
    for name, said in (
        ("slrm", "unknown profile 'slrm'. Known: kubernetes, slurm"),
        ("mine", "pip install snakemake-executor-plugin-pigeons"),
    ):
        done = exgrpo(folder, "reproduce", "smoke", "--profile", name)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ") and said in done.stderr
    assert not (folder / "results").exists()


def test_hardware_that_is_not_here_is_told_before_anything_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    for name, said in (
        ("eight-gpus-80", "8 GPUs, and this machine has 2"),
        ("one-gpu-81", "unknown hardware 'one-gpu-81'. Did you mean 'one-gpu-80'?"),
    ):
        done = exgrpo(folder, "reproduce", "smoke", "--hardware", name)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ") and said in done.stderr
    assert not (folder / "results").exists()


def test_the_shell_of_a_kubernetes_job_passes_a_signal_on(tmp_path: Path) -> None:
    """As the first process of a pod that is to end: the job saves what it has, and says how."""
    script = tmp_path / "script"
    script.write_text("trap 'echo saved; exit 75' TERM\necho begun\nsleep 50 & wait\n")
    command = next(
        line for line in (PROFILES / "kubernetes/submit").read_text().split('"""') if "trap" in line
    )
    process = subprocess.Popen(
        ["sh", "-c", command, "job", str(script)],
        stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "begun\n"
    process.terminate()
    assert process.stdout.read() == "saved\n"
    assert process.wait(timeout=20) == 75


def test_the_job_of_kubernetes_asks_for_what_the_docs_say() -> None:
    job = yaml.safe_load((PROFILES / "kubernetes/job.yaml").read_text())
    assert job["spec"]["backoffLimit"] == 0
    assert job["spec"]["template"]["spec"]["restartPolicy"] == "Never"
