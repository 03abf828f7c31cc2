"""Everything that a resume needs, in one file, written whole or not at all.

Weights, optimiser, replay buffer, position in the question stream, the latch of the delayed start
and the counters go together. Random draws are derived from (seed, purpose, step), so there is no
generator state to keep.

A file ends with the SHA-256 of all before it: what proves a checkpoint cannot be parted from it,
as a second file or a name could, and torch still opens it as one of its own. It is hashed while it
is written and read in portions: with a large model it is a hundred GB.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import torch

from exgrpo.errors import UserError
from exgrpo.experience import ReplayBuffer
from exgrpo.processes import ALONE, Processes
from exgrpo.records import whole_file
from exgrpo.settings import Buffer
from exgrpo.stream import FreshStream

KEEP = 2  # the newest, and one before it should the newest be damaged
_PROOF = hashlib.sha256().digest_size
_PORTION = 1 << 24  # bytes that are read at a time


@dataclass
class Progress:
    """What a run has reached, weights and optimiser apart. All of it goes into a checkpoint."""

    step: int = 0
    started: bool = False  # the delayed start has happened
    reincarnated: bool = False  # ReMix: the policy has become the reference, replay is over
    best: float = -1.0  # best validation accuracy so far
    sampled_tokens: int = 0
    seconds: float = 0.0
    stream: FreshStream = field(default_factory=FreshStream)
    buffer: ReplayBuffer = field(default_factory=ReplayBuffer)

    def state(self) -> dict[str, Any]:
        return {**vars(self), "stream": self.stream.state(), "buffer": self.buffer.state()}

    @classmethod
    def from_state(cls, rules: Buffer, state: dict[str, Any]) -> "Progress":
        stream = FreshStream.from_state(state["stream"])
        buffer = ReplayBuffer.from_state(rules, state["buffer"])
        return cls(**{**state, "stream": stream, "buffer": buffer})


class _Hashed:
    """A file that torch writes to; `proof` is of all that was written."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.proof = hashlib.sha256()
        self.error: OSError | None = None

    def write(self, content: bytes) -> int:
        self.proof.update(content)
        try:
            return self.file.write(content)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self.file.flush()


def save(folder: Path, step: int, state: dict[str, Any]) -> None:
    """Write `step-<step>.pt`, then drop all but the newest KEEP."""
    with whole_file(folder / f"step-{step:08d}.pt") as aside:
        _write(aside, state)
    for old in _files(folder)[:-KEEP]:
        old.unlink(missing_ok=True)


def _write(path: Path, state: dict[str, Any]) -> None:
    with path.open("wb") as file:
        hashed = _Hashed(file)
        try:
            torch.save(state, hashed)  # type: ignore[arg-type]
        except RuntimeError:  # torch closes its archive all the same, and that fails in turn
            if hashed.error is not None:
                raise hashed.error from None
            raise
        file.write(hashed.proof.digest())


def load_latest(
    folder: Path, say: Callable[[str], None] = print, processes: Processes = ALONE
) -> dict[str, Any] | None:
    """The newest sound checkpoint, or None when there is none at all.

    Its tensors stay in the file, so that the processes of a machine do not each hold a copy: what
    is to be kept must be copied. A damaged one is set aside as `*.damaged`, and told to `say` with
    the steps that it costs; the first process sees to that for all. UserError when every one is
    damaged or one cannot be read.
    """
    path = processes.first_does(lambda: _newest(folder, say))
    if path is None:
        return None
    state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    return state


def _newest(folder: Path, say: Callable[[str], None]) -> Path | None:
    files = _files(folder)
    damaged: list[Path] = []
    for path in reversed(files):
        if _proven(path):
            for each in damaged:
                _set_aside(each)
                say(
                    f"{each}: damaged: its bytes are not those that were written. Going on from "
                    f"{path.name}: steps {_step(path) + 1} to {_step(each)} are done again."
                )
            return path
        damaged.append(path)
    if not files:
        return None
    raise UserError(
        f"{folder}: every checkpoint is damaged ({', '.join(path.name for path in files)}): their "
        f"bytes are not those that were written. Restore one from a backup, or remove {folder} to "
        f"train from the first step."
    )


def require_same(folder: Path, saved: dict[str, Any], now: dict[str, Any]) -> None:
    """UserError that names every key in which a checkpoint's identity differs from the run's."""
    there, here = (dict(_flat(identity)) for identity in (saved, now))
    absent = "absent"
    different = [
        f"{key}: {there.get(key, absent)} there, {here.get(key, absent)} now"
        for key in {**there, **here}
        if there.get(key, absent) != here.get(key, absent)
    ]
    if different:
        listed = "\n".join(f"  {line}" for line in different)
        raise UserError(
            f"{folder}: these checkpoints are of another run:\n{listed}\nGo back to what was there "
            f"to go on with it, or remove {folder.parent} to train afresh."
        )


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value with its key in full, `section.key`."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _files(folder: Path) -> list[Path]:
    """Its checkpoints, oldest first."""
    return sorted(folder.glob("step-*.pt"))


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("step-"))


def _proven(path: Path) -> bool:
    """Whether the file's last bytes are the hash of all before."""
    try:
        left = path.stat().st_size - _PROOF
        proof = hashlib.sha256()
        with path.open("rb") as file:
            while left > 0 and (portion := file.read(min(left, _PORTION))):
                proof.update(portion)
                left -= len(portion)
            return left == 0 and file.read() == proof.digest()
    except OSError as error:
        raise UserError(
            f"{path}: cannot read the checkpoint: {error.strerror}. Mend the disk or the "
            f"permissions, then run again."
        ) from error


def _set_aside(path: Path) -> None:
    # Out of the way of the newest KEEP, but not thrown away.
    try:
        path.replace(path.with_suffix(".damaged"))
    except OSError as error:
        raise UserError(
            f"{path}: damaged, and cannot be renamed: {error.strerror}. Mend the permissions, "
            f"then run again."
        ) from error
