"""A SLURM on this machine alone, with folder, ports and keys of its own, as long as a test."""

import os
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

NODES = 2  # that SLURM sees: two daemons, each with one core of this machine
MISSING = "needs Debian's packages slurm-wlm and munge, and root: `make test-slurm`"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

# Without accounting and control groups, which need more than a container has. GPUs are files that
# are none: SLURM counts them and shows each job its own, and nobody opens them. A job that was
# put back into the queue waits there until its old credential has expired.
CONFIG = """
ClusterName=exgrpo
SlurmctldHost={host}
SlurmctldPort={controller}
SlurmUser=root
AuthInfo=socket={folder}/munge/socket,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
MpiDefault=none
JobRequeue=1
KillWait=5
GresTypes=gpu
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""
NODE = (
    "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=4000 "
    "Gres=gpu:1"
)
GRES = "NodeName=n{number} Name=gpu File=/dev/null"


def can_start() -> bool:
    return os.getuid() == 0 and all(shutil.which(program) for program in PROGRAMS)


@contextmanager
def one_slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start it; yields the environment in which SLURM's commands find it. Ends its daemons."""
    folder.chmod(0o755)
    for name in ("munge", "state", *(f"spool-n{number}" for number in range(NODES))):
        (folder / name).mkdir(mode=0o755)
    key = folder / "munge" / "key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o600)
    host = socket.gethostname()
    numbers = range(NODES)
    nodes = [NODE.format(number=each, host=host, port=free_port()) for each in numbers]
    (folder / "slurm.conf").write_text(
        CONFIG.format(folder=folder, host=host, controller=free_port(), nodes="\n".join(nodes))
    )
    gpus = ["AutoDetect=off", *(GRES.format(number=each) for each in numbers)]
    (folder / "gres.conf").write_text("\n".join(gpus))
    environment = _environment(folder)
    kept = [f"--{name}-file={folder}/munge/{name}" for name in ("key", "pid", "log", "seed")]
    munged = ["munged", "--foreground", "--force", f"--socket={folder}/munge/socket", *kept]
    daemons = [["slurmctld", "-D"], *(["slurmd", "-D", "-N", f"n{each}"] for each in numbers)]
    with ExitStack() as stack:
        for command in (munged, *daemons):
            stack.enter_context(_daemon(command, folder, environment))
        _wait_for(["idle"] * NODES, ["sinfo", "--noheader", "--Node", "--format=%T"], environment)
        try:
            yield environment
        finally:
            subprocess.run(["scancel", "--user=root"], env=environment)
            _wait_for([], ["squeue", "--noheader", "--format=%i"], environment)


def _environment(folder: Path) -> dict[str, str]:
    """Where the configuration is; for `srun` too, which Snakemake's plugin calls without it."""
    found = f"SLURM_CONF={folder}/slurm.conf"
    wrapper = folder / "bin" / "srun"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\n{found} exec {shutil.which("srun")} "$@"\n')
    wrapper.chmod(0o755)
    name, value = found.split("=")
    return os.environ | {name: value, "PATH": f"{wrapper.parent}:{os.environ['PATH']}"}


@contextmanager
def _daemon(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[None]:
    name = "-".join(command).replace("/", "_")[:30]
    with (folder / f"{name}.txt").open("w") as printed:
        process = subprocess.Popen(
            command, env=environment, stdout=printed, stderr=printed, stdin=subprocess.DEVNULL
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _wait_for(words: list[str], command: list[str], environment: dict[str, str]) -> None:
    """Until SLURM's answer to a command is this."""
    deadline = time.monotonic() + 90
    while True:
        told = subprocess.run(command, env=environment, capture_output=True, text=True)
        if told.returncode == 0 and told.stdout.split() == words:
            return
        if time.monotonic() > deadline:
            raise TimeoutError(f"{command}: {told.stdout}{told.stderr}")
        time.sleep(0.2)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        assert isinstance(port, int)
        return port
