"""The rules of the replay buffer once more, with lists and scans: for tests only."""

from dataclasses import dataclass, field
from typing import Any

from exgrpo.experience import Trajectory
from exgrpo.settings import Buffer


@dataclass
class SlowBuffer:
    """The rules of `settings.Buffer` and of facts 1.2 and 1.3 with lists and scans.

    entries: every stored trajectory, oldest first. lies: question -> bucket. retired: question ->
    what the Retired Review has of it. Every change returns its events as plain tuples.
    """

    rules: Buffer
    size: int
    entries: list[Trajectory] = field(default_factory=list)
    lies: dict[str, int] = field(default_factory=dict)
    retired: dict[str, list[Trajectory]] = field(default_factory=dict)

    def of(self, question: str) -> list[Trajectory]:
        return [each for each in self.entries if each.question == question]

    def observe(
        self, question: str, right: int, of: int, found: list[Trajectory]
    ) -> list[tuple[Any, ...]]:
        bucket = self.lies.get(question)
        if question in self.retired:
            return []
        if right == of and self.rules.retire:
            self.store(question, found)
            self.retired[question] = self.of(question) if self.rules.review_share else []
            self.drop(question)
            return [(question, "retired", None, bucket, None)]
        if right == 0 and bucket and self.rules.on_failure == "leaves":
            self.drop(question)
            return [(question, "left", None, bucket, None), *self.store(question, found)]
        if right == 0:
            wanted = 1 if bucket and self.rules.on_failure == "moves_to_1" else bucket
        elif found or self.of(question):
            wanted = right if right < self.size else self.size - 1
        else:
            wanted = bucket  # nothing that could be replayed
        events = []
        if wanted is not None and wanted != bucket:
            self.lies[question] = wanted
            events = [(question, "moved" if bucket else "entered", None, bucket, wanted)]
        return [*events, *self.store(question, found)]

    def store(self, question: str, found: list[Trajectory]) -> list[tuple[Any, ...]]:
        events = []
        bucket = self.lies.get(question)
        for each in found:
            if all(each.key != other.key for other in self.of(question)):
                self.entries.append(each)
                events.append((question, "stored", each.id, bucket, bucket))
        while self.rules.per_question and len(self.of(question)) > self.rules.per_question:
            events.append(self.evict(self.of(question)[0]))
        return events

    def age(self, step: int) -> list[tuple[Any, ...]]:
        events = []
        for each in list(self.entries):
            too_many = self.rules.capacity and len(self.entries) > self.rules.capacity
            if too_many or (self.rules.max_age and step >= each.birth_step + self.rules.max_age):
                events.append(self.evict(each))
        return events

    def evict(self, each: Trajectory) -> tuple[Any, ...]:
        before = self.lies.get(each.question)
        self.entries = [other for other in self.entries if other is not each]
        if not self.of(each.question):
            self.lies.pop(each.question, None)
        return each.question, "evicted", each.id, before, self.lies.get(each.question)

    def drop(self, question: str) -> None:
        self.lies.pop(question, None)
        self.entries = [each for each in self.entries if each.question != question]

    def review(self, returned: list[str]) -> list[tuple[Any, ...]]:
        """Take back the questions that the buffer drew; which ones is left to its generator."""
        events: list[tuple[Any, ...]] = []
        for question in returned:
            kept = self.retired.pop(question)
            self.lies[question] = self.size - 1
            events.append((question, "returned", None, None, self.size - 1))
            events += self.store(question, kept)
        return events
