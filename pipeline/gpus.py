"""Which GPUs of this machine a process gets. Snakemake counts them and does not say which.

A GPU that is in use is a locked byte of one file that all processes of a user on a machine share.
The system frees it when the last process that holds the open file has ended, however it ended. That
file becomes the standard input, which processes started within inherit, so that nobody gets a GPU
on which the trainer of a killed launcher still runs.

A GPU is known by the name that CUDA_VISIBLE_DEVICES gives it. What a scheduler gave to a job is
shared out within that job alone: on one machine two jobs may each call theirs "0".
"""

import fcntl
import os
import struct
import subprocess
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.hardware import Hardware

VISIBLE = "CUDA_VISIBLE_DEVICES"
SECONDS = 0.5  # between two looks whether GPUs are free
CHOICE = 0  # the byte that is locked while one process chooses; those of GPUs come after it


@contextmanager
def assigned(count: int) -> Iterator[tuple[str, ...]]:
    """Hold `count` GPUs, and show only these to CUDA in this process and those that it starts.

    Yields their names. Waits for GPUs that others hold. Raises UserError when there are fewer.
    To be called before CUDA is used. With 0 it shows none.
    """
    before = os.environ.get(VISIBLE)
    try:
        with _held(count) if count else nullcontext(()) as held:
            os.environ[VISIBLE] = ",".join(held)
            yield held
    finally:
        os.environ.pop(VISIBLE, None)
        if before is not None:
            os.environ[VISIBLE] = before


def require_cuda(hardware: Hardware) -> None:
    """See that torch finds what was assigned. UserError where it cannot and the driver can."""
    if not hardware.gpus:
        return
    import torch

    if torch.cuda.is_available():
        return
    here = (
        f"{hardware.title}: torch {torch.__version__} sees no GPU ({VISIBLE}={os.environ[VISIBLE]})"
    )
    if of_machine():
        raise UserError(
            f"{here}, and the driver (nvidia-smi) does: install a torch that is made for CUDA, see "
            f"docs/clusters.md, or name another hardware."
        )
    print(f"{here}, and there is no driver: it is done on the processors.", flush=True)


@contextmanager
def _held(count: int) -> Iterator[tuple[str, ...]]:
    """Hold `count` of the GPUs that are visible, by what is standard input meanwhile."""
    names = visible()
    if len(names) < count:
        raise UserError(
            f"the hardware asks for {count} GPUs, and there are {len(names)} here "
            f"({VISIBLE}={os.environ.get(VISIBLE, '<not set>')}): name another with --hardware, or "
            f"let {VISIBLE} list more."
        )
    if (null := os.open(os.devnull, os.O_RDONLY)) != 0:  # 0 where standard input was closed
        os.close(null)
    stdin = os.dup(0)
    try:
        with _lock_file().open("r+b", buffering=0) as file:
            os.dup2(file.fileno(), 0)
        yield _wait_for(names, count)
    finally:
        # Not unlocked but let go of: a process that was started within may still be at work.
        os.dup2(stdin, 0)
        os.close(stdin)


def visible() -> list[str]:
    """The GPUs that this process may use: those of CUDA_VISIBLE_DEVICES, or all of the machine."""
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        return [name for name in map(str.strip, listed.split(",")) if name not in ("", "-1")]
    return of_machine()


def of_machine() -> list[str]:
    """All GPUs of this machine, as its driver counts them; none where there is no driver."""
    try:
        told = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    lines = [line for line in told.stdout.splitlines() if line.startswith("GPU ")]
    return [str(number) for number in range(len(lines))]


def _lock_file() -> Path:
    """One a user, machine and job of a scheduler. Empty; it stays, for another may just open it."""
    folder = Path(tempfile.gettempdir()) / f"exgrpo-gpus-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / os.environ.get("SLURM_JOB_ID", "all")
    file.touch()
    return file


def _wait_for(names: list[str], count: int) -> tuple[str, ...]:
    """Lock the first `count` that are free, all at once, in the file that is standard input."""
    told = False
    while True:
        _set_lock(CHOICE, wait=True)
        free = [name for name in names if _set_lock(_byte(name))]
        for name in free if len(free) < count else free[count:]:
            _unlock(_byte(name))
        _unlock(CHOICE)
        if len(free) >= count:
            return tuple(free[:count])
        if not told:
            print(
                f"Waiting for {count} of the GPUs {', '.join(names)}: others use them.", flush=True
            )
            told = True
        time.sleep(SECONDS)


def _byte(name: str) -> int:
    # Two names that meet in one byte would only wait for each other.
    return 1 + zlib.crc32(name.encode())


def _set_lock(byte: int, wait: bool = False) -> bool:
    """Lock one byte for all who hold this open file, a child too: a lock of Linux, not of POSIX."""
    try:
        fcntl.fcntl(
            0, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, _flock(fcntl.F_WRLCK, byte)
        )
    except BlockingIOError:
        return False
    return True


def _unlock(byte: int) -> None:
    fcntl.fcntl(0, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, byte))


def _flock(kind: int, byte: int) -> bytes:
    """C's `struct flock`: kind, from the file's start, first byte, how many, no process."""
    return struct.pack("hhqqi", kind, os.SEEK_SET, byte, 1, 0)
