"""A step's batch: which questions, which of them from the buffer, and one row a trajectory."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from exgrpo.experience import Candidate, Draw
from exgrpo.grading import Verdict
from exgrpo.policy import TokenSequence
from exgrpo.questions import Question


def derived_seed(seed: int, purpose: str, step: int) -> int:
    """A seed for one purpose at one step, so that a resume needs no generator state."""
    digest = hashlib.sha256(f"{seed}/{purpose}/{step}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def numpy_generator(seed: int, purpose: str, step: int) -> np.random.Generator:
    return np.random.default_rng(derived_seed(seed, purpose, step))


def torch_generator(seed: int, purpose: str, step: int) -> torch.Generator:
    return torch.Generator().manual_seed(derived_seed(seed, purpose, step))


def fresh_questions(
    questions: Sequence[Question], cursor: int, count: int, seed: int
) -> list[Question]:
    """The next `count` questions of the shuffled stream; every epoch has a shuffle of its own."""
    size = len(questions)
    drawn = []
    for position in range(cursor, cursor + count):
        epoch, place = divmod(position, size)
        if place == 0 or position == cursor:
            order = numpy_generator(seed, "shuffle", epoch).permutation(size)
        drawn.append(questions[order[place]])
    return drawn


@dataclass(frozen=True)
class Group:
    """A question in the batch. draw: it came from the buffer. candidates: its stored trajectories,
    in the arm's order, the first of which is replayed; empty when none is."""

    question: Question
    prompt_ids: list[int]
    draw: Draw | None = None
    candidates: tuple[Candidate, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a group came out: `successes` right of `size` graded trajectories (k of K)."""

    successes: int
    size: int

    @property
    def solved(self) -> bool:
        return 0 < self.successes == self.size

    @property
    def failed(self) -> bool:
        return self.successes == 0

    @property
    def bucket(self) -> int | None:
        """k where there is something to learn from, else None."""
        return None if self.solved or self.failed else self.successes

    @property
    def difficulty(self) -> str | None:
        """The paper's three ranges (facts 4.7): at K = 8 hard is k 1-2, medium 3-5, easy 6-7."""
        if self.bucket is None:
            return None
        share = self.successes / self.size
        return "hard" if share <= 0.25 else "easy" if share >= 0.75 else "medium"


def outcome(rewards: torch.Tensor) -> Outcome:
    """The outcome of one group's rewards, [K], NaN where ungraded."""
    graded = rewards[~rewards.isnan()]
    return Outcome(int(graded.sum()), len(graded))


@dataclass(frozen=True)
class Row:
    """One trajectory of the batch. Per-token lists have one value a response token.

    entropies: under the policy at this step. behaviour_logprobs: under the policy that sampled it.
    source, birth_step: where a replayed trajectory comes from; a fresh one is born now.
    """

    id: str
    group: int
    slot: int
    question: Question
    sequence: TokenSequence
    behaviour_logprobs: list[float]
    nll: float
    entropies: list[float]
    finish: str
    response: str
    source: str | None
    birth_step: int
    verdict: Verdict
    advantage: float = 0.0

    @property
    def replayed(self) -> bool:
        return self.source is not None
