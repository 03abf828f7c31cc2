"""Several processes for one stage: this command becomes their launcher, `accelerate launch`.

Each process runs the same command line again and finds that it was launched (`WORLD_SIZE`). A user
who starts `accelerate launch` by hand comes to the same. Of two nodes each has a launcher.
"""

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import torch.distributed as dist
from accelerate.commands.launch import launch_command, launch_command_parser
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError

from exgrpo.errors import PreemptedError, UserError
from exgrpo.hardware import Hardware
from exgrpo.processes import launched
from pipeline.errors import BAD_INPUT, INTERRUPTED, PREEMPTED, told

MODULE = "pipeline.cli"
PORT = 29500  # where launchers meet, unless MASTER_PORT says otherwise
# Those at which torch's agent ends all at once. At SIGTERM it would kill a step 30 s later.
SIGNALS = {"PET_SIGNALS_TO_HANDLE": "SIGINT,SIGHUP,SIGQUIT"}


def is_launched(hardware: Hardware) -> bool:
    """Whether this process is one of all that the hardware asks for, or the only one.

    UserError when so many were launched that it says nothing of.
    """
    found, wanted = launched(), hardware.all_processes
    if found not in (1, wanted):
        raise UserError(
            f"{found} processes were launched together, and the hardware is of {wanted} "
            f"({hardware.title}): name another with --hardware, or launch {wanted}."
        )
    return found == wanted


def launch(hardware: Hardware, threads: int, stage: Sequence[str]) -> None:
    """Run a stage (what is typed after `exgrpo`) in all its processes, until they have ended.

    Raises what the processes did: UserError, PreemptedError; SystemExit for anything else.
    """
    os.environ.update(SIGNALS)
    logging.disable(logging.ERROR)  # what the agent has to say of a process, is said here
    arguments = launch_arguments(hardware, threads, stage, os.environ)
    with _passing_on() as ending:
        try:
            launch_command(launch_command_parser().parse_args(arguments))
        except ChildFailedError as failed:
            raise told_once(failed.failures, ending.is_set()) from None
        except SignalException as signalled:
            if signalled.sigval == signal.SIGINT:
                raise KeyboardInterrupt from None
            sys.exit(128 + signalled.sigval)


def start_on_all_nodes(hardware: Hardware, stage: Sequence[str]) -> None:
    """Start a launcher on every node of a SLURM job, by srun, and end as it does."""
    # Within a step of one node srun takes that for all there is, unless it is not told.
    outside = {key: each for key, each in os.environ.items() if "NODELIST" not in key}
    with _passing_on():
        sys.exit(subprocess.run(srun(hardware, stage, os.environ), env=outside).returncode)


def launch_arguments(
    hardware: Hardware, threads: int, stage: Sequence[str], environment: Mapping[str, str]
) -> list[str]:
    """What follows `accelerate launch`. Every choice is made here, none by a user's config file.

    `--multi_gpu` is Accelerate's word for processes of torch's own launcher; on a machine without
    a GPU they talk by gloo.
    """
    options = {
        "num_processes": hardware.all_processes,
        "num_machines": hardware.nodes,
        "gpu_ids": "all",  # that this process was given
        "mixed_precision": "no",
        "dynamo_backend": "no",
        "num_cpu_threads_per_process": threads,
        "main_process_port": 0,  # any that is free
        **(_meeting(environment) if hardware.nodes > 1 else {}),
    }
    given = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return ["--multi_gpu", *given, "--module", MODULE, *stage]


def _meeting(environment: Mapping[str, str]) -> dict[str, Any]:
    """Which of the nodes this one is, and where they meet."""
    rank = environment.get("MACHINE_RANK", environment.get("SLURM_NODEID"))
    address = environment.get("MASTER_ADDR", first_host(environment.get("SLURM_JOB_NODELIST", "")))
    if not rank or not address:
        raise UserError(
            "the hardware has several nodes: run this command on each, with the environment "
            "variables MACHINE_RANK (0 on the first, 1, ...) and MASTER_ADDR (the first node's "
            "address). SLURM tells both by itself."
        )
    return {
        "machine_rank": rank,
        "main_process_ip": address,
        "main_process_port": environment.get("MASTER_PORT", PORT),
    }


def first_host(nodes: str) -> str:
    """The first of SLURM's short form of a list: `gpu[03-05,9],b1` begins with `gpu03`."""
    found = re.match(r"([^,\[]*)(?:\[(\w+))?", nodes)
    return "".join(part or "" for part in found.groups()) if found else ""


def in_slurm_alone(hardware: Hardware, environment: Mapping[str, str]) -> bool:
    """Whether SLURM has given several nodes and runs this command on one of them only."""
    return (
        hardware.nodes > 1
        and "SLURM_JOB_ID" in environment
        and environment.get("SLURM_STEP_NUM_NODES") != str(hardware.nodes)
    )


def srun(hardware: Hardware, stage: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Run the same command on every node of the job, once each."""
    nodes, cores = hardware.nodes, environment.get("SLURM_CPUS_PER_TASK")
    options = [f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", "--overlap"]
    options += [f"--cpus-per-task={cores}"] if cores else []
    return ["srun", *options, sys.executable, "-m", MODULE, *stage]


@contextmanager
def _passing_on() -> Iterator[threading.Event]:
    """Pass SIGTERM on to the processes, whose sessions are their own. The event: it came.

    Again and again: one that has only just started may have missed it.
    """
    ending, over = threading.Event(), threading.Event()

    def pass_on() -> None:
        while not over.is_set():
            for child in psutil.Process().children():
                with suppress(psutil.NoSuchProcess):
                    child.terminate()
            over.wait(1)

    def tell(*_: object) -> None:
        if not ending.is_set():
            ending.set()
            threading.Thread(target=pass_on, daemon=True).start()

    before = signal.signal(signal.SIGTERM, tell)
    try:
        yield ending
    finally:
        over.set()
        signal.signal(signal.SIGTERM, before)


def told_once(failures: Mapping[int, Any], ending: bool) -> BaseException:
    """The error of processes that failed, by rank (torch's ProcessFailure), as one.

    ending: SIGTERM came to the launcher. What the launcher ended itself says nothing, nor does one
    that lost its connection to a process that was ended while it started.
    """
    ended = sorted(failures.values(), key=lambda each: int(each.timestamp))
    said = [each for each in ended if each.exitcode != -signal.SIGTERM]
    for code, kind in ((BAD_INPUT, UserError), (PREEMPTED, PreemptedError)):
        for failure in said:
            if failure.exitcode == code:
                return kind(failure.message)
    if ending:
        return PreemptedError(
            "told to end (SIGTERM) before there was a step to save: the same command goes on from "
            "what is saved."
        )
    return SystemExit(
        "\n".join(f"process {each.local_rank}: {each.message}" for each in said or ended)
    )


@contextmanager
def reporting() -> Iterator[None]:
    """In a launched process: hand an error to the launcher, which tells it once, and end.

    At once, without waiting for what others would have to answer.
    """
    file = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if launched() == 1 or file is None:
        yield
        return
    try:
        yield
        dist.destroy_process_group()
        return
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
    except Exception as error:
        code, message = told(error) or (1, traceback.format_exc())
    Path(file).write_text(json.dumps({"message": message, "timestamp": int(time.time())}))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
