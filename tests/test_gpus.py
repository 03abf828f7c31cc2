"""GPUs are shared out by a lock: real processes, kills, children that outlive a launcher."""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import yaml
from dying import run_folder, small_study
from test_preemption import has_trained, train_command
from working_folder import ROOT

from exgrpo.errors import UserError
from exgrpo.rollout.vllm_engine import Child
from pipeline.gpus import assigned, visible

# Takes GPUs again and again, and writes down when it had which.
WORKER = """
import json, random, sys, time
from pipeline.gpus import assigned
count, times, seed, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
chance = random.Random(seed)
with open(path, "w") as file:
    for _ in range(times):
        with assigned(count) as names:
            began = time.monotonic()
            time.sleep(chance.random() / 100)
            print(json.dumps([names, began, time.monotonic()]), file=file, flush=True)
"""
HOLDER = """
import os, subprocess, sys, time
from pipeline.gpus import assigned
with assigned(int(sys.argv[1])) as names:
    print(os.environ["CUDA_VISIBLE_DEVICES"], flush=True)
    if sys.argv[2] == "trainer":
        code = "import time; print('trains', flush=True); time.sleep(100)"
        child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        print(child.pid, flush=True)
    time.sleep(100)
"""
# Stands for vLLM's process.
ENGINE = """
import sys
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
connection.recv()
connection.send(("ready",))
connection.recv()
"""
NVIDIA_SMI = "#!/bin/sh\necho 'GPU 0: H100 (UUID: GPU-1)\nGPU 1: H100 (UUID: GPU-2)'"


@pytest.fixture(autouse=True)
def own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of locks for each test; no scheduler."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)


def start(code: str, *arguments: object, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        env=os.environ | environment, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def wait_until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_no_gpu_is_ever_held_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.gpus.SECONDS", 0.005)
    code = WORKER.replace(
        "count,", "import pipeline.gpus; pipeline.gpus.SECONDS = 0.005; count,", 1
    )
    paths = [tmp_path / str(number) for number in range(10)]
    workers = [
        start(code, 1 + number % 3, 15, number, path, CUDA_VISIBLE_DEVICES="0,1,2,3")
        for number, path in enumerate(paths)
    ]
    assert [worker.wait(timeout=120) for worker in workers] == [0] * len(workers)
    spans: dict[str, list[tuple[float, float]]] = {}
    for path in paths:
        for names, began, ended in map(json.loads, path.read_text().splitlines()):
            for name in names:
                spans.setdefault(name, []).append((began, ended))
    assert set(spans) == {"0", "1", "2", "3"}
    assert sum(map(len, spans.values())) == 15 * sum(1 + number % 3 for number in range(10))
    for held in map(sorted, spans.values()):
        assert all(first[1] <= then[0] for first, then in itertools.pairwise(held))


def test_a_killed_process_frees_its_gpus_and_the_next_waits_for_them() -> None:
    holder = start(HOLDER, 2, "alone", CUDA_VISIBLE_DEVICES="0,1,2")
    assert line(holder) == "0,1"
    waiting = start(HOLDER, 2, "alone", CUDA_VISIBLE_DEVICES="0,1,2")
    assert line(waiting) == "Waiting for 2 of the GPUs 0, 1, 2: others use them."
    third = start(HOLDER, 1, "alone", CUDA_VISIBLE_DEVICES="0,1,2")
    assert line(third) == "2", "who waits for two holds none of them meanwhile"
    holder.kill()
    assert line(waiting) == "0,1"
    for process in (waiting, third):
        process.kill()
    for process in (holder, waiting, third):
        process.communicate(timeout=30)


def test_a_gpu_is_not_free_while_the_trainer_of_a_killed_launcher_runs() -> None:
    launcher = start(HOLDER, 1, "trainer", CUDA_VISIBLE_DEVICES="0")
    told = {line(launcher) for _ in range(3)}
    (trainer,) = map(int, told - {"0", "trains"})
    os.killpg(launcher.pid, signal.SIGKILL)
    waiting = start(HOLDER, 1, "alone", CUDA_VISIBLE_DEVICES="0")
    assert line(waiting).startswith("Waiting")
    time.sleep(1)
    assert waiting.poll() is None and psutil.pid_exists(trainer)
    os.kill(trainer, signal.SIGKILL)
    assert line(waiting) == "0"
    waiting.kill()
    for process in (launcher, waiting):
        process.communicate(timeout=30)


def test_afterwards_all_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-a, GPU-b")
    before = os.fstat(0)
    for _ in range(2):
        with assigned(1) as names:
            assert names == ("GPU-a",)
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-a, GPU-b"
    assert os.path.samestat(before, os.fstat(0))


@pytest.mark.parametrize("listed", [None, "3"])
def test_hardware_without_gpus_shows_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: str | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if listed:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    with assigned(0) as names:
        assert names == () and os.environ["CUDA_VISIBLE_DEVICES"] == ""
    assert os.environ.get("CUDA_VISIBLE_DEVICES") == listed
    assert not list(tmp_path.iterdir())


def test_it_works_where_standard_input_is_closed() -> None:
    code = HOLDER.replace("time.sleep(100)", "")
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" 1 alone <&-', sys.executable, code],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "5"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "5\n", done.stderr


def test_the_process_of_vllm_holds_the_gpu_of_its_trainer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stand_in.py").write_text(ENGINE)
    monkeypatch.setattr("exgrpo.rollout.vllm_engine.CHILD", "stand_in")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with assigned(1):
        engine = Child({}, os.environ | {"PYTHONPATH": str(tmp_path)})
    assert _holds(engine.process.pid, "all", tmp_path)
    engine.close()


@pytest.mark.parametrize(
    ("listed", "found"), [("0,1", ["0", "1"]), ("", []), ("-1", []), ("MIG-x", ["MIG-x"])]
)
def test_what_may_be_used(monkeypatch: pytest.MonkeyPatch, listed: str, found: list[str]) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", listed)
    assert visible() == found


def test_the_machines_gpus_are_counted_by_nvidia_smi(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert visible() == []
    program = tmp_path / "nvidia-smi"
    program.write_text(NVIDIA_SMI)
    program.chmod(0o755)
    assert visible() == ["0", "1"]


def test_fewer_than_asked_for_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    with pytest.raises(UserError, match=r"asks for 2 GPUs, and there are 1 here.*--hardware"):
        assigned(2).__enter__()


def test_two_jobs_of_a_scheduler_may_call_their_gpus_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """SLURM shows each job its own GPU as 0; within a job the lock holds."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with assigned(1):
        other = start(HOLDER, 1, "alone", SLURM_JOB_ID="8")
        assert line(other) == "0"
        same = start(HOLDER, 1, "alone")
        assert line(same).startswith("Waiting")
    for process in (other, same):
        process.kill()
        process.communicate(timeout=30)


def _holds(process: int, job: str, folder: Path) -> bool:
    """Whether the standard input of a process is the file of the locks of a job."""
    locks = folder / f"exgrpo-gpus-{os.getuid()}" / job
    return os.path.samestat(Path(f"/proc/{process}/fd/0").stat(), locks.stat())


# The real command. The GPUs are made up, which it says, and trains on the processors.


@pytest.fixture
def folder(tmp_path: Path, able_folder: str) -> Path:
    """A small study, and hardware of one GPU, of two and of two nodes."""
    small_study(tmp_path, able_folder, training={"steps": 200, "checkpoint_every": 1})
    (tmp_path / "config/hardware").unlink()  # a link to the shipped ones
    (tmp_path / "config/hardware").mkdir()
    hardware = {"one": (1, 1), "two": (1, 2), "nodes": (2, 1)}
    for name, (nodes, gpus) in hardware.items():
        values = {"title": name, "nodes": nodes, "gpus": gpus, "processes": gpus, "threads": 1}
        (tmp_path / f"config/hardware/{name}.yaml").write_text(yaml.safe_dump(values))
    return tmp_path


def command(folder: Path, hardware: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*train_command(folder), "--hardware", hardware],
        cwd=folder, env=os.environ | environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_training_is_shown_one_gpu_and_holds_it_to_its_end(folder: Path) -> None:
    training = command(folder, "one", CUDA_VISIBLE_DEVICES="7,8")
    assert "sees no GPU (CUDA_VISIBLE_DEVICES=7)" in line(training)
    wait_until(has_trained(run_folder(folder)))
    other = start(HOLDER, 1, "alone", CUDA_VISIBLE_DEVICES="7,8")
    assert line(other) == "8"
    waiting = start(HOLDER, 1, "alone", CUDA_VISIBLE_DEVICES="7,8")
    assert line(waiting).startswith("Waiting")
    training.terminate()
    _, errors = training.communicate(timeout=60)
    assert training.returncode == 75, errors
    assert line(waiting) == "7"
    for process in (other, waiting):
        process.kill()
        process.communicate(timeout=30)


@pytest.mark.slow
def test_launched_processes_share_the_launcher_s_gpus_and_outlive_it_with_them(
    folder: Path,
) -> None:
    training = command(folder, "two", CUDA_VISIBLE_DEVICES="4,5,6")
    wait_until(has_trained(run_folder(folder)))
    workers = [
        each for each in psutil.Process(training.pid).children() if "train" in each.cmdline()
    ]
    assert [each.environ()["CUDA_VISIBLE_DEVICES"] for each in workers] == ["4,5", "4,5"]
    training.kill()
    training.wait()
    waiting = start(HOLDER, 2, "alone", CUDA_VISIBLE_DEVICES="4,5,6")
    assert line(waiting).startswith("Waiting")
    assert all(_holds(each.pid, "all", folder) for each in workers if each.is_running())
    for each in workers:
        each.kill()
    assert line(waiting) == "4,5"
    waiting.kill()
    for process in (training, waiting):
        process.communicate(timeout=30)


def test_a_gpu_that_is_not_there_is_an_error_and_so_is_one_that_torch_does_not_see(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("PATH", str(folder))
    shutil.copy(ROOT / "config/hardware/one-gpu-80.yaml", folder / "config/hardware")
    for message in ("asks for 1 GPUs, and there are 0 here", "the driver (nvidia-smi) does"):
        training = command(folder, "one-gpu-80")
        _, errors = training.communicate(timeout=60)
        assert training.returncode == 2 and message in errors and errors.count("\n") == 1
        (folder / "nvidia-smi").write_text(NVIDIA_SMI)
        (folder / "nvidia-smi").chmod(0o755)
    assert not run_folder(folder).exists()


def test_who_starts_a_launcher_on_every_node_leaves_the_gpus_to_them(folder: Path) -> None:
    """Both have the locks of one job: the launcher on this node would wait for ever."""
    code = HOLDER.replace("time.sleep(100)", "")
    (folder / "srun").write_text(f"#!{sys.executable}\n{code.replace('sys.argv[1]', '1')}")
    (folder / "srun").chmod(0o755)
    training = command(
        folder, "nodes", CUDA_VISIBLE_DEVICES="0", SLURM_JOB_ID="7", SLURM_JOB_NODELIST="n[1-2]",
        PATH=f"{folder}:{os.environ['PATH']}", PYTHONPATH=str(ROOT),
    )  # fmt: skip
    told, errors = training.communicate(timeout=60)
    assert training.returncode == 0 and told == "0\n", errors
