"""Asking a judge about many cases: each once, several at a time, and no answer is lost."""

import time
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field

from exgrpo.errors import UserError
from exgrpo.judges.background import begin
from exgrpo.judges.judge import Case, Judge, Judgement, UnansweredError
from exgrpo.judges.verdicts import Verdicts, key_of

MOST_FAILURES = 8  # in a row: then the judge itself is taken for broken
_SAY_EVERY = 10.0  # seconds
_UNNOTICED = 0.5  # seconds that an end may take without a word
_GLANCE = 0.2  # seconds: with polars loaded, Ctrl-C is seen only when a wait ends


@dataclass
class Tally:
    """cases: all. known: of them judged before, or equal to another. judged: now.

    unanswered: how many got no verdict, by reason.
    """

    cases: int = 0
    known: int = 0
    judged: int = 0
    unanswered: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return (
            f"{self.cases:,} seen: {self.judged:,} judged, {self.known:,} known, "
            f"{self.unanswered.total():,} without an answer"
        )


def judge_all(
    judge: Judge,
    cases: Iterable[Case],
    verdicts: Verdicts,
    workers: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Tally:
    """Put a verdict on every case into `verdicts`; those that are there cost nothing.

    Equal cases are asked about once. A case without an answer is counted and left for the next
    time. Raises UserError when the judge does, or after `MOST_FAILURES` cases in a row without an
    answer. Whatever ends it early (Ctrl-C too), answers that are on their way are waited for and
    kept; a Ctrl-C during that drops them.
    """
    tally, failures, said = Tally(), 0, time.monotonic()
    pending: dict[Future[Judgement], str] = {}
    asked: set[str] = set()

    def settle() -> None:
        nonlocal failures, said
        for future in wait(pending, _GLANCE, FIRST_COMPLETED).done:
            key = pending.pop(future)
            asked.discard(key)
            try:
                verdicts.put(key, future.result())
            except UnansweredError as error:
                tally.unanswered[str(error)] += 1
                failures += 1
                if failures >= MOST_FAILURES:
                    raise UserError(
                        f"judge {judge.name}: {failures} cases in a row got no answer. The last: "
                        f"{error}. Mend that and run the same again: it goes on."
                    ) from error
            else:
                tally.judged += 1
                failures = 0
        if time.monotonic() - said > _SAY_EVERY:
            said = time.monotonic()
            say(str(tally))

    try:
        for case in cases:
            tally.cases += 1
            key = key_of(judge, case)
            if key in asked or verdicts.get(key) is not None:
                tally.known += 1
                continue
            while len(pending) >= workers:
                settle()
            asked.add(key)
            pending[begin(judge.judge, case)] = key
        while pending:
            settle()
    except BaseException as cause:
        judge.stop()
        try:
            if left := wait(pending, _UNNOTICED).not_done:
                again = " again" if isinstance(cause, KeyboardInterrupt) else ""
                say(f"waiting for {len(left)} requests, Ctrl-C{again} to drop them")
                while wait(pending, _GLANCE).not_done:
                    pass
        finally:
            for future, key in pending.items():
                if future.done() and future.exception() is None:
                    verdicts.put(key, future.result())
        raise
    return tally
