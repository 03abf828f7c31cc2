"""The processes that train one run together.

Every one of them walks through the same step with the same groups, buffer and random draws; the
work within a step (sampling, grading, scoring, gradients) is dealt out, and what came of it is
gathered, so that all go on with the same. The first one alone writes.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from accelerate import PartialState

T = TypeVar("T")

# How long one waits for another: a checkpoint of many GB is written by the first alone.
PATIENCE = timedelta(hours=2)


@dataclass(frozen=True)
class Processes:
    """Process `rank` of `count`. group: what objects are exchanged over; None: there is one."""

    rank: int = 0
    count: int = 1
    group: Any = None

    @property
    def first(self) -> bool:
        return self.rank == 0

    def own(self, items: Sequence[T]) -> Sequence[T]:
        """The share of this process: every `count`-th."""
        return items[self.rank :: self.count]

    def gather(self, own: T) -> list[T]:
        """What every process hands in, in their order. All must call it."""
        if self.count == 1:
            return [own]
        found: list[Any] = [None] * self.count
        dist.all_gather_object(found, own, group=self.group)
        return found

    def first_does(self, work: Callable[[], T]) -> T:
        """What `work` returns in the first process, which alone calls it; the others wait for it.

        Where it raises, the first one ends, and the others with it.
        """
        return self.gather(work() if self.first else None)[0]  # type: ignore[return-value]

    def any(self, flag: bool) -> bool:
        """Whether it is true in one of them. All must call it."""
        return any(self.gather(flag))

    def deal(self, items: Sequence[T], nothing: T) -> Iterator[T]:
        """This process's share; `nothing` where others have one more, so that all keep step."""
        for start in range(0, len(items), self.count):
            turn = items[start : start + self.count]
            yield turn[self.rank] if self.rank < len(turn) else nothing


ALONE = Processes()


def launched() -> int:
    """How many processes were launched together with this one, itself included."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def processes_now() -> Processes:
    """The processes that were launched together, or this one alone. Called once a run, by all.

    Gradients are exchanged by NCCL where there are GPUs and else by gloo; objects always by gloo.
    """
    if launched() == 1:
        return ALONE
    PartialState(cpu=not torch.cuda.is_available())  # the group of Accelerate, which is torch's
    return Processes(
        dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo", timeout=PATIENCE)
    )


def device_now() -> torch.device:
    """The GPU of this process, or the processors."""
    device = PartialState(cpu=not torch.cuda.is_available()).device
    assert isinstance(device, torch.device)
    return device
