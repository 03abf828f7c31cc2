"""Accuracies of groups, visit after visit, without responses: rows of `visits` and nothing else.

The file is the one of `exgrpo history`: a JSON object, question -> shares of K rollouts. A visit is
taken for a step, since the file knows no steps.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from exgrpo.batch import Outcome
from exgrpo.errors import UserError
from exgrpo.questions import question_id
from exgrpo.records import Recorder
from exgrpo.row_files import Row
from pipeline.history import read_history
from pipeline.imports.facts import Facts


def write_history(file: Path, group_size: int, log: Path, run: str) -> Facts:
    """Write the log. UserError on a bad file (`pipeline.history.read_history`)."""
    history = read_history(file, group_size)
    ids = _ids(file, history)
    recorder = Recorder(log)
    name = run.removeprefix("import-")
    recorder.add(
        "questions",
        (
            {"question": ids[each], "source": file.name, "split": name, "text": each}
            for each in history
        ),
    )
    for group, (question, successes) in enumerate(history.items()):
        recorder.add("visits", _visits(run, group, ids[question], successes, group_size))
    steps = max(map(len, history.values()))
    recorder.flush(1, steps)
    outcomes = Counter((group_size, k) for each in history.values() for k in each)
    return Facts(
        rows=0,
        groups=outcomes,
        steps=(steps, 1, steps),
        questions=len(history),
        keys={"(keys)": "text, question", "(values)": "successes, success_share, right"},
    )


def _ids(file: Path, questions: Iterable[str]) -> dict[str, str]:
    """Question -> id. UserError on text that is no Unicode, and on questions of one id."""
    first: dict[str, str] = {}
    for question in questions:
        try:
            key = question_id(question)
        except UnicodeEncodeError as error:
            raise UserError(f"{file}: key {question!r}: half a surrogate pair. Mend it.") from error
        if key in first:
            raise UserError(
                f"{file}: keys {first[key]!r} and {question!r} are one question, but for the space "
                f"around it. Rename one, or join their lists."
            )
        first[key] = question
    return {question: key for key, question in first.items()}


def _visits(run: str, group: int, question: str, successes: list[int], size: int) -> list[Row]:
    shares = [k / size for k in successes]
    buckets = [Outcome(k, size).bucket for k in successes]
    return [
        {
            "run": run,
            "step": visit,
            "group": group,
            "question": question,
            "visit": visit,
            "experiential": False,
            "bucket": buckets[visit - 1],
            "previous_bucket": buckets[visit - 2] if visit > 1 else None,
            "successes": k,
            "size": size,
            "fresh": size,
            "graded": size,
            "right": k,
            "success_share": shares[visit - 1],
            "replayed": 0,
            **_neighbours(visit, successes, shares),
        }
        for visit, k in enumerate(successes, start=1)
    ]


def _neighbours(visit: int, successes: list[int], shares: list[float]) -> dict[str, Any]:
    before, after = visit > 1, visit < len(shares)
    return {
        "previous_step": visit - 1 if before else None,
        "previous_successes": successes[visit - 2] if before else None,
        "previous_share": shares[visit - 2] if before else None,
        "next_step": visit + 1 if after else None,
        "next_share": shares[visit] if after else None,
    }
