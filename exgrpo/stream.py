"""The stream of fresh questions: shuffled anew every epoch, with or without the retired ones."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from exgrpo.questions import Question
from exgrpo.seeds import numpy_generator
from exgrpo.settings import RunSettings

SPARE = 20  # [code] retired questions leave only while more than a batch and these would be left


@dataclass
class FreshStream:
    """The place in the epoch's order. left_out: the questions that this epoch passes over."""

    epoch: int = 0
    place: int = 0
    left_out: frozenset[str] = frozenset()
    asked: set[str] = field(default_factory=set)

    def state(self) -> dict[str, Any]:
        return {**vars(self), "left_out": sorted(self.left_out), "asked": sorted(self.asked)}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "FreshStream":
        return cls(
            state["epoch"], state["place"], frozenset(state["left_out"]), set(state["asked"])
        )


def take(
    stream: FreshStream,
    questions: Sequence[Question],
    retired: Collection[str],
    count: int,
    settings: RunSettings,
) -> list[Question]:
    """The next `count` questions. With `unused_fresh: discarded` the stream moves a whole batch."""
    batch, rule = settings.batch, settings.buffer.retired_fresh
    room = len(questions) - len(retired) > batch.questions + SPARE
    skipped = retired if rule == "leave_at_once" and room else ()
    drawn: list[Question] = []
    order = _order(stream, len(questions), settings.seed)
    wanted = max(count, batch.questions) if batch.unused_fresh == "discarded" else count
    while len(drawn) < wanted:
        if stream.place == len(questions):
            stream.epoch, stream.place = stream.epoch + 1, 0
            left_out = retired if rule == "leave_next_epoch" and room else ()
            stream.left_out = frozenset(left_out)
            order = _order(stream, len(questions), settings.seed)
        question = questions[order[stream.place]]
        stream.place += 1
        name = question.id
        if name not in skipped and name not in stream.left_out:
            drawn.append(question)
    stream.asked.update(question.id for question in drawn[:count])
    return drawn[:count]


def _order(stream: FreshStream, count: int, seed: int) -> np.ndarray:
    """This epoch's order of the questions, as places in the list, [count]."""
    return numpy_generator(seed, "shuffle", stream.epoch).permutation(count)
