"""Everything that a resume needs, in one file, written whole or not at all.

Weights, optimiser, replay buffer, position in the question stream, the latch of the delayed start
and the counters go together. Random draws are derived from (seed, purpose, step), so there is no
generator state to keep.
"""

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from exgrpo.errors import UserError
from exgrpo.experience import ReplayBuffer
from exgrpo.records import write_whole
from exgrpo.settings import Buffer
from exgrpo.stream import FreshStream

KEEP = 2  # the newest, and one before it should the newest be damaged


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


def save(folder: Path, step: int, state: dict[str, Any]) -> None:
    """Write `step-<step>.pt`, then drop all but the newest KEEP."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_whole(folder / f"step-{step:08d}.pt", buffer.getbuffer())
    for old in _files(folder)[:-KEEP]:
        old.unlink()


def load_latest(folder: Path) -> dict[str, Any] | None:
    """The newest checkpoint, or None when there is none. UserError when it cannot be read."""
    files = _files(folder)
    if not files:
        return None
    try:
        state: dict[str, Any] = torch.load(files[-1], map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises many kinds for a damaged file
        raise UserError(
            f"{files[-1]}: cannot read the checkpoint: {error}. Remove this file: training then "
            f"resumes from the one before it."
        ) from error
    return state


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*.pt"))
