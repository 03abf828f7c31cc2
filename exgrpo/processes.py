"""The processes that train one run together.

Every one of them walks through the same step with the same groups, buffer and random draws; the
work within a step (sampling, grading, scoring, gradients) is dealt out, and what came of it is
gathered, so that all go on with the same. The first one alone writes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist

T = TypeVar("T")


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

    def deal(self, items: Sequence[T], nothing: T) -> Iterator[T]:
        """This process's share; `nothing` where others have one more, so that all keep step."""
        for start in range(0, len(items), self.count):
            turn = items[start : start + self.count]
            yield turn[self.rank] if self.rank < len(turn) else nothing


ALONE = Processes()


def processes_now() -> Processes:
    """The processes that were launched together, or this one alone."""
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return ALONE
    return Processes(dist.get_rank(), dist.get_world_size(), dist.new_group(backend="gloo"))
