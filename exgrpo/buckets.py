"""Buckets of questions by success count, with every operation in constant time."""

from dataclasses import dataclass, field


@dataclass
class Buckets:
    """members: bucket -> its questions. places: question -> (bucket, place in its list).

    A question that goes is replaced by the last of its list, so that nothing is ever scanned, and
    the buffer may hold as many questions as it likes.
    """

    members: dict[int, list[str]] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.places)

    def of(self, question: str) -> int | None:
        """The question's bucket, or None where it lies in none."""
        place = self.places.get(question)
        return place[0] if place else None

    def put(self, question: str, bucket: int) -> None:
        """Into this bucket, out of any other. A question that lies there keeps its place."""
        if self.of(question) == bucket:
            return
        self.remove(question)
        questions = self.members.setdefault(bucket, [])
        self.places[question] = bucket, len(questions)
        questions.append(question)

    def remove(self, question: str) -> None:
        if question not in self.places:
            return
        bucket, place = self.places.pop(question)
        questions = self.members[bucket]
        last = questions.pop()
        if last != question:
            questions[place] = last
            self.places[last] = bucket, place
        if not questions:
            del self.members[bucket]

    @classmethod
    def of_members(cls, members: dict[int, list[str]]) -> "Buckets":
        """Buckets with these questions, in this order."""
        places = {
            question: (bucket, place)
            for bucket, questions in members.items()
            for place, question in enumerate(questions)
        }
        return cls({bucket: list(questions) for bucket, questions in members.items()}, places)
