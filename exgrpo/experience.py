"""The replay buffer: who enters, which question is drawn, which trajectory is replayed.

Paper section 4.1 and Algorithms 1 and 2. A question lies in the bucket of its latest success
count k (1 .. K-1); k = K retires it for ever; k = 0 changes nothing (its old bucket stands, as in
the released code). Only right trajectories are stored, as token ids with the log-probabilities of
the policy that sampled them; the same token ids are stored once and keep the old entry.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from exgrpo.policy import TokenSequence


@dataclass(frozen=True)
class Trajectory:
    """A stored success. `logprobs` (nat) are the behaviour policy's, one a response token."""

    id: str
    question: str
    prompt_ids: list[int]
    token_ids: list[int]
    logprobs: list[float]
    birth_step: int

    @property
    def sequence(self) -> TokenSequence:
        return TokenSequence(self.prompt_ids, self.token_ids)


@dataclass(frozen=True)
class Event:
    """A change of the buffer: entered, moved, stored, replayed or retired."""

    question: str
    event: str
    trajectory: str | None = None
    bucket_before: int | None = None
    bucket_after: int | None = None


@dataclass(frozen=True)
class Draw:
    """A question drawn from the buffer, with the bucket that it lay in."""

    question: str
    bucket: int


@dataclass(frozen=True)
class Candidate:
    """A stored trajectory with its metrics under the policy now, for one draw."""

    trajectory: Trajectory
    mean_entropy: float
    summed_entropy: float
    nll: float


@dataclass
class ReplayBuffer:
    """buckets: question -> k of its latest visit. stored: question -> its right trajectories."""

    buckets: dict[str, int] = field(default_factory=dict)
    stored: dict[str, list[Trajectory]] = field(default_factory=dict)
    retired: set[str] = field(default_factory=set)

    def observe(
        self, question: str, successes: int, group_size: int, right: Sequence[Trajectory]
    ) -> list[Event]:
        """Take in a wholly graded group: k successes of K, and the right ones sampled now."""
        if question in self.retired or successes == 0:
            return []
        before = self.buckets.get(question)
        if successes == group_size:
            self.buckets.pop(question, None)
            self.stored.pop(question, None)
            self.retired.add(question)
            return [Event(question, "retired", bucket_before=before)]
        if before is None and not right:
            return []  # every success was cut off at the length limit: nothing to replay
        events = []
        if before != successes:
            name = "entered" if before is None else "moved"
            events.append(Event(question, name, None, before, successes))
        self.buckets[question] = successes
        kept = self.stored.setdefault(question, [])
        known = {tuple(each.token_ids) for each in kept}
        for trajectory in right:
            if tuple(trajectory.token_ids) not in known:
                known.add(tuple(trajectory.token_ids))
                kept.append(trajectory)
                events.append(Event(question, "stored", trajectory.id, before, successes))
        return events

    def bucket_sizes(self, group_size: int) -> list[int]:
        """Questions in bucket 1 .. K-1."""
        counts = np.bincount(list(self.buckets.values()), minlength=group_size)
        return [int(count) for count in counts[1:group_size]]

    def state(self) -> dict[str, Any]:
        """Plain lists and dicts, for a checkpoint."""
        return {
            "buckets": self.buckets,
            "stored": [asdict(each) for kept in self.stored.values() for each in kept],
            "retired": sorted(self.retired),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ReplayBuffer":
        """The buffer of a checkpoint; equal in content and in every next draw."""
        buffer = cls(dict(state["buckets"]), {}, set(state["retired"]))
        for each in state["stored"]:
            buffer.stored.setdefault(each["question"], []).append(Trajectory(**each))
        return buffer


def bucket_weights(group_size: int, mu: float, sigma: float) -> np.ndarray:
    """Weight of bucket 1 .. K-1: a Gaussian around mu * K with sigma in success counts, [K-1].

    The released code's reading (facts 1.5); the paper writes sigma in accuracy units.
    """
    counts = np.arange(1, group_size)
    return np.exp(-0.5 * ((counts - mu * group_size) / sigma) ** 2)


def draw_questions(
    buffer: ReplayBuffer, count: int, weights: np.ndarray, rng: np.random.Generator
) -> list[Draw]:
    """Up to `count` distinct questions (Algorithm 2).

    A multinomial over the non-empty buckets says how many come from each; what a bucket cannot
    give is drawn again, one at a time, among buckets with room; within a bucket every question is
    as likely as another, without replacement.
    """
    members: dict[int, list[str]] = {}
    for question, bucket in buffer.buckets.items():
        members.setdefault(bucket, []).append(question)
    filled = sorted(members)
    sizes = np.array([len(members[bucket]) for bucket in filled], dtype=int)
    count = min(count, int(sizes.sum()))
    if count == 0:
        return []
    weight = weights[np.array(filled) - 1]
    if not weight.sum() > 0:  # no bucket within reach of a narrow Gaussian: uniform, as released
        weight = np.ones(len(filled))
    wanted = rng.multinomial(count, weight / weight.sum())
    taken = np.minimum(wanted, sizes)
    for _ in range(count - int(taken.sum())):
        room = np.where(taken < sizes, weight, 0.0)
        if not room.sum() > 0:
            room = (taken < sizes).astype(float)
        taken[rng.choice(len(filled), p=room / room.sum())] += 1
    return [
        Draw(members[bucket][index], bucket)
        for bucket, number in zip(filled, taken, strict=True)
        for index in rng.choice(len(members[bucket]), size=number, replace=False)
    ]


def rank_candidates(
    candidates: Sequence[Candidate], choice: str, rng: np.random.Generator
) -> list[Candidate]:
    """Candidates of one draw in the arm's order; the first is replayed (Algorithm 1, line 11).

    The entropy is the mean full-vocabulary token entropy under the current policy over response
    tokens, end token included. Ties go to the older trajectory.
    """
    if choice == "random":
        return [candidates[index] for index in rng.permutation(len(candidates))]
    sign = {"lowest_entropy": 1.0, "highest_entropy": -1.0}[choice]
    return sorted(candidates, key=lambda candidate: sign * candidate.mean_entropy)
