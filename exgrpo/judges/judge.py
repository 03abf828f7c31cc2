"""The interface of every judge of a response's reasoning: question, gold, response -> verdict."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    """What a judge is asked about: a response to a question, and the right answer."""

    question: str
    gold: str
    response: str


@dataclass(frozen=True)
class Judgement:
    """valid: None when the judge cannot decide. reason: what decided, for a reader."""

    valid: bool | None
    reason: str


@dataclass(frozen=True)
class Judge:
    """A judge. A case that was judged by this name and version is not judged again.

    judge: usable from many threads; raises UnansweredError where this case got no verdict, and
    UserError where none will. stop: lets no further request begin.
    """

    name: str
    version: str
    judge: Callable[[Case], Judgement]
    stop: Callable[[], None] = lambda: None


class UnansweredError(Exception):
    """This case got no verdict, another may: it is asked about again another time."""
