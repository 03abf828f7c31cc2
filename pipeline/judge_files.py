"""What the judges that ask nobody say of model outputs: their false alarms, measured.

`exgrpo judge FILE...`: answers are graded first, for a flag on a wrong one may well be right.
"""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from exgrpo.errors import UserError
from exgrpo.grading import Answer, Grader, rules_of
from exgrpo.judges.code import fired
from exgrpo.judges.equations import equations
from exgrpo.judges.judge import Case
from pipeline.imports.formats import Options, find
from pipeline.imports.rows import Tally, rows_of
from pipeline.judge import LlmOptions, make_judge
from pipeline.terminal import printable

_SHOWN = 300  # characters of a response that is shown


@dataclass
class Measured:
    """Counts over the right, the wrong, or the ungraded answers of one file."""

    answers: int = 0
    verdicts: Counter[bool | None] = field(default_factory=Counter)
    details: Counter[str] = field(default_factory=Counter)
    flagged: list[tuple[str, str]] = field(default_factory=list)  # reason, response


def measure_files(
    name: str, paths: list[Path], show: int = 0, options: LlmOptions | None = None
) -> None:
    """Print a table of what the judge says of each file, and the first `show` flagged answers.

    Raises UserError on a file of no shape with gold answers, and for the judge `llm` or its
    options.
    """
    if name == "llm":
        raise UserError("--judge llm judges runs: `exgrpo import` the file first.")
    judge = make_judge(name, options or LlmOptions())
    measured: dict[tuple[str, str], Measured] = {}
    for path in paths:
        for graded, case in _cases(path):
            cell = measured.setdefault((path.name, graded), Measured())
            verdict = judge.judge(case)
            cell.answers += 1
            cell.verdicts[verdict.valid] += 1
            cell.details.update(_details(name, case.response))
            if verdict.valid is False:
                cell.flagged.append((verdict.reason, case.response))
    print(_table(name, judge.version, measured))
    flagged = [
        (file, graded, *each) for (file, graded), cell in measured.items() for each in cell.flagged
    ]
    for file, graded, reason, response in flagged[:show]:
        print(printable(f"\n{file}, a {graded} answer: {reason}\n  {response[:_SHOWN]!r}"))


def _cases(path: Path) -> list[tuple[str, Case]]:
    """Every response with `right`, `wrong` or `ungraded`, by our grade."""
    source = find(path, Options())
    if source.kind is None:
        raise UserError(f"{path}: has no gold answers, so that nothing tells right from wrong.")
    tally = Tally()
    rows = list(rows_of(source, tally))
    tally.check(path)
    with Grader() as grader:
        rules = rules_of(source.kind)
        verdicts = grader.grade_all([Answer(row["gold"], row["response"], rules) for row in rows])
    words = {True: "right", False: "wrong", None: "ungraded"}
    return [
        (words[verdict.correct], Case(row["text"] or "", row["gold"], row["response"]))
        for row, verdict in zip(rows, verdicts, strict=True)
    ]


def _details(name: str, response: str) -> list[str]:
    if name == "code":
        return fired(response)
    words = {True: "hold", False: "wrong", None: "excused"}
    return [words[equation.holds] for equation in equations(response)]


def _table(name: str, version: str, measured: dict[tuple[str, str], Measured]) -> str:
    """The counts as a Markdown table."""
    extra = "rules that fire" if name == "code" else "equations: hold, wrong, excused"
    lines = [
        f"Judge {name}, version {version}",
        "",
        f"| file | answers | number | valid | not valid | undecided | {extra} |",
        "|---|---|---|---|---|---|---|",
    ]
    for (file, graded), cell in sorted(measured.items()):
        valid, invalid, undecided = (cell.verdicts[each] for each in (True, False, None))
        if name == "code":
            shown = ", ".join(f"{rule} {times}" for rule, times in cell.details.most_common())
        else:
            shown = ", ".join(str(cell.details[each]) for each in ("hold", "wrong", "excused"))
        lines.append(
            f"| {file} | {graded} | {cell.answers} | {valid} | {invalid} | {undecided} | {shown} |"
        )
    return "\n".join(lines)
