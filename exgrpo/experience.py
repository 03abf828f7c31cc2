"""The replay buffer: who enters, in which bucket a question lies, who retires or goes.

Paper section 4.1 and Algorithm 1. A question lies in the bucket of its latest success count k
(1 .. K-1); k = K retires it. Trajectories are stored as token ids with the log-probabilities of
the policy that sampled them. What the paper leaves open is a setting: `exgrpo.settings.Buffer`.
Which question is drawn and which trajectory is replayed: `exgrpo.selection`.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import torch

from exgrpo.buckets import Buckets
from exgrpo.policy import TokenSequence
from exgrpo.settings import Buffer


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A stored trajectory.

    token_ids [tokens] int32, logprobs [tokens] float32: nat, the behaviour policy's.
    birth_entropy: nat/token, mean token entropy when it was sampled. key: equal for duplicates.
    """

    id: str
    question: str
    prompt_ids: list[int]
    token_ids: np.ndarray
    logprobs: np.ndarray
    birth_step: int
    birth_entropy: float
    correct: bool
    key: str
    finish: str = "stop"

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def sequence(self) -> TokenSequence:
        return TokenSequence(self.prompt_ids, self.token_ids.tolist())


def token_key(token_ids: np.ndarray) -> str:
    """Equal for responses of the same tokens."""
    return hashlib.sha256(token_ids.tobytes()).hexdigest()


@dataclass(frozen=True)
class Event:
    """A change of the buffer; its kinds are those of column `event` of table `experience`."""

    question: str
    event: str
    trajectory: str | None = None
    bucket_before: int | None = None
    bucket_after: int | None = None


@dataclass
class ReplayBuffer:
    """stored: question -> its trajectories, oldest first. born: trajectory id -> its question, in
    the order of storing. retired: question -> what the Retired Review would bring back with it."""

    rules: Buffer = field(default_factory=Buffer)
    buckets: Buckets = field(default_factory=Buckets)
    stored: dict[str, list[Trajectory]] = field(default_factory=dict)
    born: OrderedDict[str, str] = field(default_factory=OrderedDict)  # its first is found at once
    retired: dict[str, list[Trajectory]] = field(default_factory=dict)
    tokens: int = 0

    @property
    def bytes(self) -> int:
        """Bytes of the token ids and log-probabilities, those kept for the Retired Review too."""
        review = sum(len(each) for kept in self.retired.values() for each in kept)
        a_token = np.dtype(np.int32).itemsize + np.dtype(np.float32).itemsize
        return (self.tokens + review) * a_token

    def bucket_sizes(self, group_size: int) -> list[int]:
        """Questions in bucket 1 .. K-1."""
        return [len(self.buckets.members.get(bucket, ())) for bucket in range(1, group_size)]

    def observe(
        self,
        question: str,
        successes: int,
        size: int,
        group_size: int,
        found: Sequence[Trajectory],
    ) -> list[Event]:
        """Take in a wholly graded group: k `successes` of `size` that count, K = `group_size`.

        found: what it has to store: the right trajectories sampled now, or all of them.
        """
        if question in self.retired:
            return []
        before = self.buckets.of(question)
        if successes == size and self.rules.retire:
            return self._retire(question, before, found)
        if successes == 0:
            return [*self._fail(question, before), *self.add(question, found)]
        if not found and question not in self.stored:
            return []  # every success was cut off at the length limit: nothing to replay
        events = []
        after = min(successes, group_size - 1)  # without retirement k = K lies in the last bucket
        if before != after:
            self.buckets.put(question, after)
            name = "entered" if before is None else "moved"
            events.append(Event(question, name, None, before, after))
        return [*events, *self.add(question, found)]

    def age(self, step: int) -> list[Event]:
        """After a step: drop what is older than `max_age` steps or beyond `capacity`."""
        limit, room = self.rules.max_age, self.rules.capacity
        if limit is None and room is None:
            return []
        events = []
        while self.born:
            question = next(iter(self.born.values()))
            oldest = self.stored[question][0]
            too_old = limit is not None and step - oldest.birth_step >= limit
            too_many = room is not None and len(self.born) > room
            if not (too_old or too_many):
                break
            events += self._evict_oldest(question)
        return events

    def review(self, step: int, group_size: int, rng: np.random.Generator) -> list[Event]:
        """Retired Review (paper Table 7): some retired questions return, into bucket K-1."""
        if not self.rules.review_share or step % self.rules.review_every:
            return []
        able = [question for question, kept in self.retired.items() if kept]
        count = round(self.rules.review_share * len(able))
        events = []
        for index in rng.choice(len(able), size=count, replace=False):
            question = able[index]
            kept = self.retired.pop(question)
            self.buckets.put(question, group_size - 1)
            events.append(Event(question, "returned", None, None, group_size - 1))
            events += self.add(question, kept)
        return events

    def _retire(
        self, question: str, before: int | None, found: Sequence[Trajectory]
    ) -> list[Event]:
        if self.rules.review_share:
            self.add(question, found)
            self.retired[question] = list(self.stored.get(question, ()))
        else:
            self.retired[question] = []
        self._drop(question)
        return [Event(question, "retired", bucket_before=before)]

    def _fail(self, question: str, before: int | None) -> list[Event]:
        if before is None or self.rules.on_failure == "stays":
            return []
        if self.rules.on_failure == "leaves":
            self._drop(question)
            return [Event(question, "left", None, before, None)]
        if before == 1:
            return []
        self.buckets.put(question, 1)
        return [Event(question, "moved", None, before, 1)]

    def add(self, question: str, found: Iterable[Trajectory]) -> list[Event]:
        """Store what is not stored yet; then the oldest go while there are too many."""
        bucket = self.buckets.of(question)
        known = {each.key for each in self.stored.get(question, ())}
        events = []
        for trajectory in found:
            if trajectory.key in known:
                continue  # the older entry stays
            known.add(trajectory.key)
            self.stored.setdefault(question, []).append(trajectory)
            self.born[trajectory.id] = question
            self.tokens += len(trajectory)
            events.append(Event(question, "stored", trajectory.id, bucket, bucket))
        room = self.rules.per_question
        while room is not None and len(self.stored.get(question, ())) > room:
            events += self._evict_oldest(question)
        return events

    def _evict_oldest(self, question: str) -> list[Event]:
        """Drop a question's oldest trajectory; without any left the question leaves its bucket."""
        before = self.buckets.of(question)
        oldest = self.stored[question].pop(0)
        self._forget(oldest)
        if not self.stored[question]:
            self._drop(question)
        return [Event(question, "evicted", oldest.id, before, self.buckets.of(question))]

    def _drop(self, question: str) -> None:
        self.buckets.remove(question)
        for trajectory in self.stored.pop(question, ()):
            self._forget(trajectory)

    def _forget(self, trajectory: Trajectory) -> None:
        del self.born[trajectory.id]
        self.tokens -= len(trajectory)

    def state(self) -> dict[str, Any]:
        """For a checkpoint: plain values and flat tensors, trajectories in the order of storing."""
        place = {each.id: each for kept in self.stored.values() for each in kept}
        review = [each for kept in self.retired.values() for each in kept]
        return {
            "buckets": {number: list(inside) for number, inside in self.buckets.members.items()},
            "stored": _pack([place[name] for name in self.born]),
            "retired": list(self.retired),
            "review": _pack(review),
        }

    @classmethod
    def from_state(cls, rules: Buffer, state: dict[str, Any]) -> "ReplayBuffer":
        """The buffer of a checkpoint; equal in content and in every next draw."""
        buffer = cls(rules, Buckets.of_members(state["buckets"]))
        for each in _unpack(state["stored"]):
            buffer.stored.setdefault(each.question, []).append(each)
            buffer.born[each.id] = each.question
            buffer.tokens += len(each)
        buffer.retired = {question: [] for question in state["retired"]}
        for each in _unpack(state["review"]):
            buffer.retired[each.question].append(each)
        return buffer


_PLAIN = ("id", "question", "birth_step", "birth_entropy", "correct", "key", "finish")


def _pack(trajectories: Sequence[Trajectory]) -> dict[str, Any]:
    def flat(arrays: Iterable[Any], dtype: type) -> torch.Tensor:
        return torch.from_numpy(
            np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype, copy=False)
        )

    return {
        **{name: [getattr(each, name) for each in trajectories] for name in _PLAIN},
        "prompts": {each.question: each.prompt_ids for each in trajectories},
        "lengths": [len(each) for each in trajectories],
        "token_ids": flat((each.token_ids for each in trajectories), np.int32),
        "logprobs": flat((each.logprobs for each in trajectories), np.float32),
    }


def _unpack(packed: dict[str, Any]) -> list[Trajectory]:
    ends = list(accumulate(packed["lengths"]))

    def parts(flat: torch.Tensor) -> list[np.ndarray]:
        values = flat.numpy()  # copies: a view would keep the memory of those that go later
        lengths = zip(packed["lengths"], ends, strict=True)
        return [values[end - length : end].copy() for length, end in lengths]

    columns = [packed[name] for name in _PLAIN]
    columns += [parts(packed["token_ids"]), parts(packed["logprobs"])]
    return [
        Trajectory(name, question, packed["prompts"][question], ids, logprobs, *rest)
        for name, question, *rest, ids, logprobs in zip(*columns, strict=True)
    ]
