"""The real command with several processes: what it starts, and how it ends."""

import errno
import json
import multiprocessing
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import torch
import yaml
from alike import require_alike
from dying import run_folder, small_study, train_until
from test_preemption import has_trained, newest_step, start, train_command, wait_until
from together import several
from working_folder import exgrpo

from analysis.errors import UserError as AnalysisError
from exgrpo.errors import PreemptedError, UserError
from exgrpo.hardware import Hardware
from exgrpo.policy import TokenSequence, load_policy
from exgrpo.rollout.prefill import prefill
from exgrpo.scorer import FILLER, Scorer, dropouts, score_sequences
from pipeline import launch

pytestmark = pytest.mark.slow

SMALL = {"steps": 6, "checkpoint_every": 2, "dtype": "float64"}
TWO_NODES = Hardware(title="test", nodes=2, gpus=8, processes=8)
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "gpu[03-04]", "SLURM_NODEID": "1"}


@pytest.fixture
def folder(tmp_path: Path, able_folder: str) -> Path:
    """A small study, and hardware of two processes and of two nodes."""
    small_study(tmp_path, able_folder, training=SMALL)
    hardware = {
        "two": {"processes": 2, "weights": "sharded", "threads": 1},
        "nodes": {"nodes": 2, "processes": 1},
    }
    (tmp_path / "config/hardware").unlink()  # a link to the shipped ones
    (tmp_path / "config/hardware").mkdir()
    for name, values in hardware.items():
        path = tmp_path / f"config/hardware/{name}.yaml"
        path.write_text(yaml.safe_dump({"title": "test", **values}))
    return tmp_path


def on(folder: Path, hardware: str) -> list[str]:
    return [*train_command(folder), "--hardware", hardware]


# What is started


def test_one_machine_launches_its_processes_and_each_runs_the_same_command() -> None:
    words = launch.launch_arguments(several(4), 3, ["train", "--run", "r"], {})
    assert words[0] == "--multi_gpu" and words[-5:] == [
        "--module", "pipeline.cli", "train", "--run", "r"
    ]  # fmt: skip
    options = dict(zip(words[1:-5:2], words[2:-5:2], strict=True))
    assert options["--num_processes"] == "4" and options["--num_machines"] == "1"
    assert options["--num_cpu_threads_per_process"] == "3"
    assert options["--gpu_ids"] == "all", "or a user's default config would say which"
    parsed = launch.launch_command_parser().parse_args(words)
    assert parsed.training_script == "pipeline.cli" and parsed.module


def test_slurm_says_which_node_this_is_and_where_they_meet() -> None:
    words = launch.launch_arguments(TWO_NODES, 1, ["train"], SLURM)
    options = dict(zip(words[1:-3:2], words[2:-3:2], strict=True))
    assert options["--num_processes"] == "16" and options["--num_machines"] == "2"
    assert options["--machine_rank"] == "1"
    assert options["--main_process_ip"] == "gpu03" and options["--main_process_port"] == "29500"


def test_by_hand_the_environment_says_so_and_a_missing_word_is_an_error() -> None:
    by_hand = {"MACHINE_RANK": "0", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "1234"}
    words = launch.launch_arguments(TWO_NODES, 1, ["train"], by_hand)
    assert words[words.index("--main_process_ip") + 1] == "10.0.0.1"
    assert words[words.index("--main_process_port") + 1] == "1234"
    with pytest.raises(UserError, match=r"MACHINE_RANK .* MASTER_ADDR"):
        launch.launch_arguments(TWO_NODES, 1, ["train"], {"MASTER_ADDR": "10.0.0.1"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a", "a"), ("a-1,b-2", "a-1"), ("gpu[03-05,9],b1", "gpu03"), ("r1-[7,9]", "r1-7"), ("", "")],
)
def test_the_first_host_of_slurm_s_short_form(nodes: str, first: str) -> None:
    assert launch.first_host(nodes) == first


def test_on_one_node_of_several_slurm_starts_the_launchers() -> None:
    assert launch.in_slurm_alone(TWO_NODES, SLURM)
    assert not launch.in_slurm_alone(TWO_NODES, {**SLURM, "SLURM_STEP_NUM_NODES": "2"})
    assert not launch.in_slurm_alone(TWO_NODES, {})
    assert not launch.in_slurm_alone(several(8), SLURM)
    words = launch.srun(TWO_NODES, ["train"], {"SLURM_CPUS_PER_TASK": "16"})
    assert words[0] == "srun" and {"--nodes=2", "--ntasks-per-node=1"} <= set(words)
    assert "--cpus-per-task=16" in words
    assert words[-4:] == [sys.executable, "-m", "pipeline.cli", "train"]


def test_launched_in_another_number_than_the_hardware_s_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not launch.is_launched(several(2))
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert launch.is_launched(several(2))
    with pytest.raises(UserError, match=r"2 processes were launched together.* is of 3"):
        launch.is_launched(several(3))


class Failure:
    def __init__(self, exitcode: int, message: str, timestamp: int = 0) -> None:
        self.exitcode, self.message, self.timestamp = exitcode, message, timestamp
        self.local_rank = 0


def test_of_what_failed_together_the_cause_is_told() -> None:
    lost, cause = Failure(1, "connection lost"), Failure(2, "bad", 1)
    error = launch.told_once({0: lost, 1: cause, 2: Failure(-15, "")}, ending=False)
    assert isinstance(error, UserError) and str(error) == "bad"
    error = launch.told_once({0: Failure(75, "saved"), 1: Failure(-15, "")}, ending=True)
    assert isinstance(error, PreemptedError) and str(error) == "saved"
    assert isinstance(launch.told_once({0: Failure(-15, "")}, ending=True), PreemptedError)
    error = launch.told_once({0: lost, 1: Failure(-9, "killed")}, ending=False)
    assert isinstance(error, SystemExit) and "lost" in str(error) and "killed" in str(error)


def test_who_was_told_to_end_while_it_started_was_preempted_whatever_its_peers_say() -> None:
    lost, ended = Failure(1, "connection lost"), Failure(-15, "", 1)
    for failures in ({0: lost, 1: ended}, {0: ended, 1: lost}, {0: lost}):
        assert isinstance(launch.told_once(failures, ending=True), PreemptedError)
        assert isinstance(launch.told_once(failures, ending=False), SystemExit)
    error = launch.told_once({0: lost, 1: ended, 2: Failure(2, "bad", 2)}, ending=True)
    assert isinstance(error, UserError) and str(error) == "bad"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UserError("bad"), 2, "bad"),
        (AnalysisError("bad"), 2, "bad"),
        (PreemptedError("saved"), 75, "saved"),
        (OSError(errno.ENOSPC, "No space left", "log"), 2, "log: No space left. Free some"),
        (PermissionError(errno.EACCES, "Denied", "log"), 2, "log: Denied. Allow writing"),
        (OSError(errno.ENOENT, "No such file"), 1, "Traceback"),
        (ValueError("a bug"), 1, "Traceback"),
    ],
)
def test_a_launched_process_hands_its_launcher_what_alone_it_would_have_told(
    error: Exception, code: int, message: str, tmp_path: Path
) -> None:
    process = multiprocessing.get_context("fork").Process(
        target=fail_in_reporting, args=(error, tmp_path / "error.json")
    )
    process.start()
    process.join(30)
    assert process.exitcode == code
    assert json.loads((tmp_path / "error.json").read_text())["message"].startswith(message)


def fail_in_reporting(error: Exception, file: Path) -> None:
    os.environ |= {"WORLD_SIZE": "2", "TORCHELASTIC_ERROR_FILE": str(file)}
    with launch.reporting():
        raise error


# How it ends


def test_sigterm_to_the_command_saves_the_step_and_one_process_goes_on(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, able_folder: str
) -> None:
    """Preempted with two processes, trained to the end with one: as never interrupted."""
    run = run_folder(folder)
    process = start(folder, on(folder, "two"))
    wait_until(has_trained(run), process)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=100)
    assert process.returncode == 75, errors
    saved = newest_step(run)
    assert errors.count("preempted: ") == 1
    assert f"told to end (SIGTERM). Saved after step {saved} of 6" in errors
    assert "Traceback" not in errors and saved < 6
    row = json.loads((run / "run.json").read_text())
    assert "1 threads, 2 processes, weights sharded" in row["hardware"], "trap 55"

    assert not train_until(folder)
    alone = tmp_path_factory.mktemp("alone")
    small_study(alone, able_folder, training=SMALL)
    assert not train_until(alone)
    require_alike(run, run_folder(alone), 1e-6, 1e-10)


def test_one_process_killed_or_ctrl_c_ends_all_and_leaves_no_orphan(folder: Path) -> None:
    run = run_folder(folder)
    for end in ("kill", "interrupt"):
        before = newest_step(run) if has_trained(run)() else 0
        process = start(folder, on(folder, "two"))
        wait_until(lambda: has_trained(run)() and newest_step(run) > before, process)  # noqa: B023
        workers = psutil.Process(process.pid).children()
        everyone = psutil.Process(process.pid).children(recursive=True)
        assert sum("train" in each.cmdline() for each in workers) == 2
        if end == "kill":
            workers[-1].kill()
        else:
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=100)
        assert process.returncode == {"kill": 1, "interrupt": 130}[end], errors
        _, alive = psutil.wait_procs(everyone, timeout=20)
        assert not alive
        if end == "interrupt":
            assert (
                errors == "interrupted: run the same command again; a study goes on where it was\n"
            )


def test_a_mistake_is_told_once_with_exit_code_2(folder: Path) -> None:
    (folder / "results/small/questions/done.json").unlink()
    done = exgrpo(folder, *on(folder, "two")[3:])
    assert done.returncode == 2
    assert done.stderr.count("error: ") == 1 and "Traceback" not in done.stderr


def test_two_launchers_on_one_machine_meet_as_two_nodes_do(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, able_folder: str
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = on(folder, "nodes")
    nodes = [
        subprocess.Popen(
            command, cwd=folder, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "MACHINE_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                 "MASTER_PORT": str(port)},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    told = [node.communicate(timeout=300) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], told
    assert "step    6/6" in told[0][0] and not re.search(r"step +\d+/6", told[1][0])
    alone = tmp_path_factory.mktemp("alone")
    small_study(alone, able_folder, training=SMALL)
    assert not train_until(alone)
    require_alike(run_folder(folder), run_folder(alone), 1e-6, 1e-10)
    row = json.loads((run_folder(folder) / "run.json").read_text())
    assert "2 nodes of 1 processes" in row["hardware"]


# What is exchanged


def test_scores_are_sent_to_other_processes_without_their_neighbours(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    sequences = [TokenSequence([1, 2], [3] * 100) for _ in range(8)]
    apart = score_sequences(Scorer(model), sequences[:1], 1.0, 10_000)
    together = score_sequences(Scorer(model), sequences, 1.0, 10_000)
    assert len(pickle.dumps(together[3])) == len(pickle.dumps(apart[0]))


# Activation checkpointing


def test_trap_60_rollouts_keep_their_cache_under_activation_checkpointing(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    before = prefill(model, [[1, 2, 3]])
    scorer = Scorer(model, checkpointing=True)
    logprobs, _ = scorer([FILLER, FILLER], 1.0)
    logprobs.sum().backward()
    assert not model.training
    after = prefill(model, [[1, 2, 3]])
    assert len(after.keys) == len(before.keys) > 0
    assert all(torch.equal(*pair) for pair in zip(before.keys, after.keys, strict=True))


def test_activations_are_worked_out_again_when_it_learns_and_only_then(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    calls: list[bool] = []
    layer = model.base_model.layers[0].mlp  # type: ignore[union-attr, index]
    layer.register_forward_pre_hook(lambda *_: calls.append(True))
    for checkpointing, count in ((False, 1), (True, 2)):
        calls.clear()
        Scorer(model, checkpointing)([FILLER], 1.0)[0].sum().backward()
        assert len(calls) == count
        with torch.no_grad():
            Scorer(model, checkpointing)([FILLER], 1.0)
        assert len(calls) == count + 1


def test_trap_23_a_model_with_dropout_is_refused(base_folder: str) -> None:
    model, _ = load_policy(base_folder)
    assert dropouts(model) == []
    model.base_model.layers[1].self_attn.attention_dropout = 0.1  # type: ignore[union-attr, index]
    with pytest.raises(UserError, match=r"model\.layers\.1\.self_attn\.attention_dropout"):
        Scorer(model, checkpointing=True)
    Scorer(model)
    model.base_model.layers[1].self_attn.attention_dropout = 0.0  # type: ignore[union-attr, index]
    model.add_module("extra", torch.nn.Dropout(0.2))
    with pytest.raises(UserError, match=r"extra\.p"):
        Scorer(model, checkpointing=True)
