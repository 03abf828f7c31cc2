"""Verdicts: is a response right? Exact text first, math-verify in guarded workers for the rest.

How a response is read are `Rules`. What counts in it is the last box; what it may do beside, and
where opinions differ, is in docs/grading.md.

A verdict is None, never 0 or 1, when the grader itself failed or the gold cannot be read. An
answer that cannot be decided inside the limits of a worker is wrong: the grader did its work, the
answer is at fault.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace

from exgrpo import answers, equality, latex, normal_form, reasons
from exgrpo.errors import UserError
from exgrpo.question_settings import Grading

THINK_END = "</think>"
_START_LIMIT = 120.0  # seconds for a worker to load sympy on a busy machine
_SERVICE_LIFE = 1000  # comparisons after which a worker is replaced, so that caches never pile up
_DEEPEST = 100  # brackets in brackets of an answer that is compared
_UNREADABLE = {"none", "null", "nan", "n/a", "see figure", "see solution"}


@dataclass(frozen=True)
class Rules:
    """How a response is read: what kind of answer is asked for, and in which form.

    letter: the answer is the letter of a choice. think: only the text after the last `</think>`
    counts; without one there is no answer. prose: without a box, the answer that the text states.
    """

    letter: bool = False
    think: bool = False
    prose: bool = False


KINDS = {
    "boxed": Rules(),
    "mcq": Rules(letter=True),
    "think": Rules(think=True),
    "prose": Rules(prose=True),
}


def rules_of(kind: str) -> Rules:
    """The rules that a file names: a key of KINDS, or several with `+` between: `think+mcq`.

    Raises ValueError for an unknown name.
    """
    names = kind.split("+")
    if unknown := [name for name in names if name not in KINDS]:
        raise ValueError(f"unknown kind {unknown[0]!r}; known: {', '.join(KINDS)}")
    named = [KINDS[name] for name in names]
    return Rules(*(any(getattr(each, field.name) for each in named) for field in fields(Rules)))


def rules_for(question_kind: str, settings: Grading, test: bool = False) -> Rules:
    """The rules for a question of kind `boxed` or `mcq` in training, or at a test."""
    own = rules_of(question_kind)
    think = settings.think
    if test and settings.think_at_test is not None:
        think = settings.think_at_test
    return replace(own, think=own.think or think, prose=own.prose or settings.prose)


@dataclass(frozen=True)
class Answer:
    """A response to be graded, with the gold and the rules of its question."""

    gold: str
    response: str
    rules: Rules = Rules()


@dataclass(frozen=True)
class Verdict:
    """A graded response.

    correct: None when the grader failed or the gold cannot be read; extracted: the answer as
    written, None if none was found; format_ok: an answer could be read; reason: what decided, for a
    reader.
    """

    correct: bool | None
    extracted: str | None
    format_ok: bool
    reason: str


@dataclass(frozen=True)
class _Open:
    """A response that exact text did not settle: two answers in normal form to be compared."""

    gold: str
    answer: str
    extracted: str


def check_gold(gold: object, where: str) -> str:
    """The gold as text. UserError naming `where` (file and row) when it cannot be graded against.

    Numbers become text. Refused are golds that are empty, null or "see figure", and those that no
    answer can match: braces that do not balance, a box, `####`.
    """
    if isinstance(gold, (int, float)) and not isinstance(gold, bool):
        gold = str(gold)
    if not isinstance(gold, str) or not _readable(gold):
        raise UserError(
            f"{where}: the gold is {gold!r}: no answer can be graded against it. "
            f"Write the right answer as text, or remove the row."
        )
    return gold


def _readable(gold: str) -> bool:
    plain = gold.strip()
    said = plain.lower().rstrip(" .!?")
    return bool(plain) and said not in _UNREADABLE and answers.is_answer(plain)


def grade(gold: str, response: str, kind: str = "boxed") -> Verdict:
    """Grade in this process. No limits: for trusted responses; use `Grader` for a model's.

    Raises ValueError for an unknown kind: `rules_of`.
    """
    found = _settle(Answer(gold, response, rules_of(kind)))
    if isinstance(found, Verdict):
        return found
    from exgrpo import algebra  # loads sympy, which exact answers never need

    return _verdict(found, *algebra.compare(found.gold, found.answer))


def _settle(item: Answer) -> Verdict | _Open:
    """Everything that exact text can settle; the comparison still open otherwise."""
    gold, response, rules = item.gold, item.response, item.rules
    if not _readable(gold):
        return Verdict(None, None, False, reasons.NO_GOLD)
    letter = _asks_letter(gold, rules)
    wanted = answers.choice(gold) if letter else None
    if letter and wanted is None:
        return Verdict(None, None, False, reasons.NO_GOLD_LETTER)
    if rules.think:
        if THINK_END not in response:
            return Verdict(False, None, False, reasons.NO_THINK_END)
        response = response.rpartition(THINK_END)[2]
    extracted = answers.last_box(response)
    if extracted is None and rules.prose:
        extracted = answers.stated_answer(response, letter)
    if extracted is None:
        return Verdict(False, None, False, reasons.NO_ANSWER)
    if letter:
        chosen = answers.choice(extracted)
        if chosen is None:
            return Verdict(False, extracted, False, reasons.NO_CHOICE)
        return Verdict(chosen == wanted, extracted, True, reasons.CHOICE)
    if gold.strip() == extracted:
        return Verdict(True, extracted, True, reasons.SAME_TEXT)
    try:
        pair = _Open(*normal_form.tidy_both(gold, extracted), extracted)
        if max(map(latex.depth, (pair.gold, pair.answer))) > _DEEPEST:
            return _verdict(pair, False, reasons.TOO_DEEP)
        equal = equality.equal(pair.gold, pair.answer, equality.exact)
    except RecursionError:
        return Verdict(False, extracted, True, reasons.TOO_DEEP)
    return pair if equal is None else _verdict(pair, equal, reasons.EXACT)


def _verdict(pair: _Open, correct: bool | None, reason: str) -> Verdict:
    return Verdict(correct, pair.extracted, True, reason)


def _asks_letter(gold: str, rules: Rules) -> bool:
    """Whether the answer is the letter of a choice."""
    return rules.letter or (rules.prose and answers.choice(gold) == gold.strip())


def vote(item: Answer, verdict: Verdict) -> str | None:
    """The answer that was read in the form in which it votes with others; None if none was read.

    Of a choice its letter, else the normal form (`exgrpo.normal_form.tidy`); as written where it is
    nested too deep for that.
    """
    if verdict.extracted is None or not verdict.format_ok:
        return None
    if _asks_letter(item.gold, item.rules):
        return answers.choice(verdict.extracted)
    try:
        return normal_form.tidy(verdict.extracted)
    except RecursionError:
        return verdict.extracted


class _Worker:
    """One worker process: compares one pair at a time under limits of time and memory."""

    def __init__(self, time_limit: float, memory_limit: int) -> None:
        # The worker counts processor time, so that a busy machine changes no verdict; this wall
        # time is only for a worker that does not run at all.
        self._wall_limit = 6 * time_limit + 5
        self._served = 0
        self.process = subprocess.Popen(
            [sys.executable, "-m", "exgrpo.grading_worker", str(time_limit), str(memory_limit)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
            start_new_session=True,  # Ctrl-C is for us to handle; a worker ends with its input
        )

    def compare(self, pair: _Open) -> Verdict:
        if self._served == 0 and self._reply(_START_LIMIT) is None:
            return _verdict(pair, None, "grader failed: a worker did not start")
        self._served += 1
        try:
            assert self.process.stdin is not None
            self.process.stdin.write(json.dumps([pair.gold, pair.answer]).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            return _verdict(pair, None, "grader failed: a worker was gone")
        reply = self._reply(self._wall_limit)
        if reply is not None:
            return _verdict(pair, *reply)
        code = self.process.wait()
        if code == -signal.SIGPROF:
            return _verdict(pair, False, reasons.TIME)
        if self._timed_out:
            return _verdict(pair, None, "grader failed: a worker did not run")
        return _verdict(pair, None, f"grader failed: a worker ended with code {code}")

    @property
    def usable(self) -> bool:
        return self.process.poll() is None and self._served < _SERVICE_LIFE

    def stop(self) -> None:
        self.process.kill()
        self.process.communicate()

    def _reply(self, limit: float) -> tuple[bool, str] | None:
        """The next line of the worker; None when it dies or `limit` seconds of wall time pass."""
        self._timed_out = False
        timer = threading.Timer(limit, self._time_out)
        timer.daemon = True
        timer.start()
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        timer.cancel()
        timer.join()  # so that a later kill cannot come from this one
        return tuple(json.loads(line)) if line.endswith(b"\n") else None

    def _time_out(self) -> None:
        self._timed_out = True
        self.process.kill()


class Grader:
    """Grades many responses; `with Grader() as grader: grader.grade_all(items)`.

    Workers start when the first response needs one. One that hangs (`time_limit`, seconds of
    processor time an answer), takes more than `memory_limit` bytes or dies is replaced. Usable
    from any thread, one call at a time.
    """

    def __init__(
        self, workers: int = 2, time_limit: float = 5.0, memory_limit: int = 2 << 30
    ) -> None:
        self._count = workers
        self._limits = (time_limit, memory_limit)
        self._workers: list[_Worker] = []
        self._lock = threading.Lock()

    @classmethod
    def of(cls, settings: Grading) -> "Grader":
        """A grader with the workers and limits of the settings."""
        return cls(settings.workers, settings.time_limit, settings.memory_limit)

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
        """A verdict on each answer, in their order."""
        settled = [_settle(item) for item in items]
        pairs = {(s.gold, s.answer): s for s in settled if isinstance(s, _Open)}
        with self._lock:
            compared = dict(zip(pairs, self._compare_all(list(pairs.values())), strict=True))
        return [
            replace(compared[s.gold, s.answer], extracted=s.extracted)
            if isinstance(s, _Open)
            else s
            for s in settled
        ]

    def _compare_all(self, pairs: list[_Open]) -> list[Verdict]:
        if not pairs:
            return []
        while len(self._workers) < self._count:
            self._workers.append(_Worker(*self._limits))
        for index in range(self._count):
            self._replace_if_spent(index)
        free = queue.SimpleQueue[int]()
        for index in range(self._count):
            free.put(index)

        def compare(pair: _Open) -> Verdict:
            index = free.get()
            try:
                return self._workers[index].compare(pair)
            finally:
                self._replace_if_spent(index)
                free.put(index)

        with ThreadPoolExecutor(self._count) as pool:
            return list(pool.map(compare, pairs))

    def _replace_if_spent(self, index: int) -> None:
        if not self._workers[index].usable:
            self._workers[index].stop()
            self._workers[index] = _Worker(*self._limits)
