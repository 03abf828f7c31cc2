"""Accuracies of groups, visit after visit, without responses: rows of `visits` and nothing else.

The file is the one of `exgrpo history`: a JSON object, question -> shares of K rollouts. A visit is
taken for a step, since the file knows no steps.
"""

from collections import Counter
from pathlib import Path
from typing import Any

from exgrpo.batch import Outcome
from exgrpo.questions import question_id
from exgrpo.records import Recorder
from pipeline.history import read_history
from pipeline.import_facts import Facts
from pipeline.import_read import Row


def write_history(file: Path, group_size: int, log: Path, run: str) -> Facts:
    """Write the log. UserError on a bad file (`pipeline.history.read_history`)."""
    history = read_history(file, group_size)
    ids = {question: question_id(question) for question in history}
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


def _visits(run: str, group: int, question: str, successes: list[int], size: int) -> list[Row]:
    shares = [k / size for k in successes]
    return [
        {
            "run": run,
            "step": visit,
            "group": group,
            "question": question,
            "visit": visit,
            "experiential": False,
            "bucket": Outcome(k, size).bucket,
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
