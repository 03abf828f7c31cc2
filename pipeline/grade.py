"""`exgrpo grade`: a verdict on every line of a file of golds and responses, as it is read.

One line in, one line out, in the same order: a line that cannot be graded gives the verdict null.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

from exgrpo import reasons
from exgrpo.errors import UserError
from exgrpo.golds import gold_of
from exgrpo.grading import Answer, Grader, Rules, Verdict, rules_of
from exgrpo.records import whole_file
from exgrpo.row_files import json_object
from pipeline.terminal import printable

BATCH = 512  # lines that are graded together; no more are held
MOST_NAMED = 30  # lines without a verdict, kinds, reasons: more are only counted
STDIN = Path("-")
_PACKED = {b"PAR1": "Parquet", b"\x1f\x8b": "gzip", b"[": "a JSON array"}  # by how a file begins
# Reasons, up to their colon, of answers that are wrong because nobody could compare them.
_NOT_COMPARED = {reasons.UNREADABLE, reasons.NOT_COMPARED, reasons.TOO_DEEP}


@dataclass(frozen=True)
class Line:
    """A line of the file: its number, its id if it has one, and what is to be graded.

    answer: None where the line is bad; problem says why. foreign: its kind, where that is not ours.
    """

    number: int
    id: dict[str, Any]
    answer: Answer | None
    foreign: str | None = None
    problem: str = ""


@dataclass
class Summary:
    """What became of the lines."""

    verdicts: Counter[bool | None] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)  # by reason
    limits: Counter[str] = field(default_factory=Counter)
    not_compared: Counter[str] = field(default_factory=Counter)
    ungraded: Counter[str] = field(default_factory=Counter)
    foreign: Counter[str] = field(default_factory=Counter)  # kinds
    named: list[str] = field(default_factory=list)

    def add(self, line: Line, verdict: Verdict) -> None:
        self.verdicts[verdict.correct] += 1
        if line.foreign is not None:
            _count(self.foreign, line.foreign)
        if verdict.correct is None:
            _count(self.ungraded, verdict.reason.partition(":")[0])
            if len(self.named) < MOST_NAMED:
                self.named.append(f"line {line.number}: {verdict.reason}")
        elif not verdict.format_ok:
            self.unanswered[verdict.reason] += 1
        elif verdict.reason in (reasons.TIME, reasons.MEMORY):
            self.limits[verdict.reason] += 1
        elif (reason := verdict.reason.partition(":")[0]) in _NOT_COMPARED:
            self.not_compared[reason] += 1


def _count(counts: Counter[str], name: str) -> None:
    """One more of this name; names that come late are counted together, so that memory holds."""
    counts[name if name in counts or len(counts) < MOST_NAMED else "others"] += 1


def grade_file(file: Path, output: Path | None, kind: str, workers: int, time_limit: float) -> int:
    """Write a verdict a line to `output`, or print it; a summary goes to the error stream.

    kind: of the lines that name none of ours. time_limit: seconds of processor time an answer.
    Returns the number of lines without a verdict (null). UserError on a file that cannot be read or
    written, and on an unknown kind.
    """
    try:
        rules = rules_of(kind)
    except ValueError as error:
        raise UserError(f"--kind: {error}.") from error
    if output is not None and output.exists() and file.exists() and output.samefile(file):
        raise UserError(f"--output {output}: that is the file to be graded. Name another.")
    summary = Summary()
    with _read(file) as lines, Grader(workers, time_limit) as grader:
        if output is None:
            _grade(lines, sys.stdout, rules, grader, summary)
        else:
            with _written(output) as to:
                _grade(lines, to, rules, grader, summary)
    _print(summary, kind)
    return summary.verdicts[None]


@contextmanager
def _read(file: Path) -> Iterator[IO[bytes]]:
    """The file, or the standard input, to be read by lines. UserError where it has none."""
    opened: Any = sys.stdin.buffer if file == STDIN else _opened(file, "rb", "Name a JSONL file.")
    with opened as lines:
        begins = lines.peek(4)
        if found := [name for start, name in _PACKED.items() if begins.startswith(start)]:
            raise UserError(f"{file}: that is {found[0]}. Give JSONL: one JSON object a line.")
        yield lines


@contextmanager
def _written(output: Path) -> Iterator[IO[str]]:
    """The file of verdicts, there once all are; a pipe or device takes them as they come."""
    remedy = "Name a file in a folder that exists."
    if not output.parent.is_dir():
        raise UserError(f"{output}: No such folder. {remedy}")
    if output.exists() and not output.is_file():
        with _opened(output, "w", remedy) as to:
            yield to
        return
    with whole_file(output.resolve()) as aside, aside.open("w") as to:  # a link stays one
        yield to


def _opened(path: Path, mode: str, remedy: str) -> Any:
    try:
        return path.open(mode)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise UserError(f"{path}: {error.strerror}. {remedy}") from error


def _grade(
    lines: Iterable[bytes], to: IO[str], rules: Rules, grader: Grader, summary: Summary
) -> None:
    read = (_line(number, line, rules) for number, line in enumerate(lines, start=1))
    for batch in _batches(read):
        verdicts = iter(grader.grade_all([line.answer for line in batch if line.answer]))
        for line in batch:
            verdict = next(verdicts) if line.answer else Verdict(None, None, False, line.problem)
            summary.add(line, verdict)
            to.write(json.dumps({**line.id, **vars(verdict)}) + "\n")
        to.flush()


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(lines, BATCH)):
        yield batch


def _line(number: int, line: bytes, rules: Rules) -> Line:
    """What a line asks for; other keys than gold, response, kind and id do not matter."""
    exact, reason, _ = json_object(line, numbers_as_text=True)
    if exact is None:
        problem = f"{reason}: {_short(line.decode(errors='replace').strip())}"
        return Line(number, {}, None, problem=problem if line.strip() else "blank line")
    row = json_object(line)[0] or exact  # what json cannot read is a number of thousands of digits
    own = {"id": row["id"]} if "id" in row else {}
    for key in ("gold", "response"):
        if key not in row:
            return Line(number, own, None, problem=f"no key `{key}`")
    response = row["response"]
    if not isinstance(response, str):
        return Line(number, own, None, problem=f"the response is no text: {_short(response)}")
    try:
        gold = gold_of(exact["gold"], "")  # as written: a float would round it
    except UserError:
        return Line(number, own, None, problem=f"{reasons.NO_GOLD}: {_short(row['gold'])}")
    kind, foreign = row.get("kind"), None
    if kind not in (None, ""):
        try:
            rules = rules_of(str(kind))
        except ValueError:
            foreign = str(kind)
    return Line(number, own, Answer(gold, response, rules), foreign)


def _short(value: object) -> str:
    return repr(value)[:60]


def _print(summary: Summary, kind: str) -> None:
    right, wrong, none = (summary.verdicts[each] for each in (True, False, None))
    told = [f"{right + wrong + none} lines: {right} right, {wrong} wrong, {none} without a verdict"]
    for name, counts in (
        ("wrong, without an answer in the form asked for", summary.unanswered),
        ("wrong, at a limit of the grader", summary.limits),
        ("wrong, since no mathematics could be read", summary.not_compared),
        ("without a verdict", summary.ungraded),
        (f"of a kind that is none of ours, read as {kind}", summary.foreign),
    ):
        if counts:
            each = ", ".join(f"{reason} {times}" for reason, times in counts.most_common())
            told.append(f"  {name}: {counts.total()} ({each})")
    told += [f"    {line}" for line in summary.named]
    if (more := none - len(summary.named)) > 0:
        told.append(f"    and {more} more")
    print(printable("\n".join(told)), file=sys.stderr)
