"""Stage: grade a file of real model outputs and put it into the lake and the catalog.

Each question's responses are one group, as in training: k right of K. Labels that the file
carries are kept beside ours, as rows of `judgements` by the judge `recorded`; token counts,
entropies and log-probabilities stay null, since the file does not know them. The shapes of files
that can be read are in `pipeline.import_shapes`.
"""

import json
import platform
import re
import shutil
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from exgrpo.batch import Outcome
from exgrpo.errors import UserError
from exgrpo.grading import Grader, Verdict
from exgrpo.markers import mark
from exgrpo.questions import question_id
from exgrpo.records import Recorder
from exgrpo.settings import content_hash
from exgrpo.tables.manifest import file_hash
from pipeline.catalog import build_catalog
from pipeline.files import write_json
from pipeline.import_shapes import Outputs, Response, read_outputs
from pipeline.lake import add_import
from pipeline.provenance import commit, now

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_MOST_SHOWN = 10  # disagreements printed


@dataclass(frozen=True)
class Graded:
    """A response with our verdict and its place: `group` in its step, `slot` in the group."""

    response: Response
    verdict: Verdict
    group: int
    slot: int


def import_file(file: Path, name: str | None, results: Path) -> None:
    """Import a file as run `import-<name>` (its stem unless told), replacing one of that name.

    Raises UserError on a file that cannot be used; then nothing is changed.
    """
    name = name or re.sub(r"[^A-Za-z0-9._-]+", "-", file.stem).strip("-._")
    if not _NAME.fullmatch(name):
        raise UserError(f"--name {name!r}: use letters, digits, dots, dashes and underscores.")
    started, clock = now(), time.monotonic()
    outputs = read_outputs(file)
    items = [(response.gold, response.text) for response in outputs.responses]
    with Grader() as grader:
        verdicts = grader.grade_all(items, outputs.shape.kind)
    graded = place(outputs.responses, verdicts)
    row = _run_row(f"import-{name}", file, outputs, started, time.monotonic() - clock)
    _replace_log(results / "imports" / name, row, graded, file.name, name)
    add_import(name, results)
    build_catalog(results, None)
    print(describe(graded, name, outputs.shape.name))


def place(responses: Sequence[Response], verdicts: Sequence[Verdict]) -> list[Graded]:
    """Give each response its group (a question in a step) and its slot, both in file order."""
    groups: dict[tuple[int, str], int] = {}
    groups_in_step: Counter[int] = Counter()
    slots: Counter[tuple[int, str]] = Counter()
    graded = []
    for response, verdict in zip(responses, verdicts, strict=True):
        key = response.step, question_id(response.question)
        if key not in groups:
            groups[key] = groups_in_step[response.step]
            groups_in_step[response.step] += 1
        graded.append(Graded(response, verdict, groups[key], slots[key]))
        slots[key] += 1
    return graded


def outcomes(graded: Sequence[Graded]) -> dict[tuple[int, int], Outcome]:
    """k of K of each group, by step and group; ungraded responses count in neither."""
    right: Counter[tuple[int, int]] = Counter()
    size: Counter[tuple[int, int]] = Counter()
    for item in graded:
        key = item.response.step, item.group
        right[key] += item.verdict.correct is True
        size[key] += item.verdict.correct is not None
    return {key: Outcome(right[key], size[key]) for key in size}


def describe(graded: Sequence[Graded], name: str, shape: str) -> str:
    """What was imported: counts, groups by k of K, and where recorded labels differ from ours."""
    groups = outcomes(graded)
    questions = {question_id(item.response.question) for item in graded}
    right = sum(item.verdict.correct is True for item in graded)
    lines = [
        f"imported {name} ({shape}): {len(questions)} questions, {len(graded)} responses, "
        f"{right} right, {sum(item.verdict.extracted is None for item in graded)} without an "
        f"answer, {sum(item.verdict.correct is None for item in graded)} ungraded",
        "  k of K   groups",
    ]
    counts = Counter((each.size, each.successes) for each in groups.values())
    for (size, k), count in sorted(counts.items()):
        note = "failed" if k == 0 else "solved" if k == size else f"bucket {k}"
        lines.append(f"  {k:>2} of {size:<3} {count:>5}   {note}")
    labelled = [item for item in graded if item.response.recorded is not None]
    differ = [item for item in labelled if item.response.recorded is not item.verdict.correct]
    lines.append(f"{len(differ)} of {len(labelled)} recorded labels differ from ours")
    for item in differ[:_MOST_SHOWN]:
        extracted = item.verdict.extracted
        lines.append(
            f"  step {item.response.step}, group {item.group}, slot {item.slot}: recorded "
            f"{_word(item.response.recorded)}, ours {_word(item.verdict.correct)}: gold "
            f"{item.response.gold!r}, answer {extracted if extracted is None else extracted[:60]!r}"
        )
    if len(differ) > _MOST_SHOWN:
        lines.append(
            "  all of them: SELECT * FROM judgements JOIN trajectories USING (run, trajectory) "
            f"WHERE run = 'import-{name}' AND judge = 'recorded' AND valid IS DISTINCT FROM correct"
        )
    return "\n".join(lines)


def _word(label: bool | None) -> str:
    return "ungraded" if label is None else "right" if label else "wrong"


def _replace_log(
    folder: Path, row: dict[str, Any], graded: Sequence[Graded], file: str, name: str
) -> None:
    """Write the log aside, then put it in the place of an older import of that name."""
    aside, old = folder.with_name(f".{name}.new"), folder.with_name(f".{name}.old")
    for left in (aside, old):
        shutil.rmtree(left, ignore_errors=True)
    recorder = Recorder(aside / "log")
    recorder.add("questions", _question_rows(graded, file, name))
    recorder.add("trajectories", _trajectory_rows(graded, row["run"], file))
    recorder.add("judgements", _judgement_rows(graded, row["run"], file))
    steps = [item.response.step for item in graded]
    recorder.flush(min(steps), max(steps))
    write_json(aside / "run.json", {**row, "steps": len(set(steps))})
    if folder.exists():
        folder.rename(old)
    aside.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def _run_row(
    run: str, file: Path, outputs: Outputs, started: str, seconds: float
) -> dict[str, Any]:
    facts = {
        "file": file.name,
        "sha256": file_hash(file),
        "shape": outputs.shape.name,
        "kind": outputs.shape.kind,
    }
    return {
        "run": run,
        "study": "imports",
        "arm": "import",
        "settings": json.dumps(facts),
        "settings_hash": content_hash(facts),
        "versions": json.dumps(
            {"python": platform.python_version(), "math-verify": version("math-verify")}
        ),
        "commit": commit(),
        "started": started,
        "finished": now(),
        "seconds": seconds,
        "attempts": 1,
        "status": "imported",
    }


def _question_rows(graded: Sequence[Graded], source: str, name: str) -> list[dict[str, Any]]:
    rows = {}
    for item in graded:
        question = question_id(item.response.question)
        rows[question] = {
            "question": question,
            "source": source,
            "split": name,
            "text": item.response.question,
            "gold": item.response.gold,
        }
    return list(rows.values())


def _trajectory_rows(graded: Sequence[Graded], run: str, source: str) -> list[dict[str, Any]]:
    groups = outcomes(graded)
    rows = []
    for item in graded:
        response, verdict = item.response, item.verdict
        result = groups[response.step, item.group]
        markers = mark(source, response.question, response.text)
        rows.append(
            {
                "trajectory": _trajectory(run, item),
                "run": run,
                "step": response.step,
                "group": item.group,
                "slot": item.slot,
                "question": question_id(response.question),
                "experiential": False,
                "replayed": False,
                "birth_step": response.step,
                "response": response.text,
                "extracted": verdict.extracted,
                "correct": verdict.correct,
                "format_ok": verdict.format_ok,
                "group_successes": result.successes,
                "group_size": result.size,
                "bucket": result.bucket,
                "difficulty": result.difficulty,
                "code": markers.code,
                "repetition": markers.repetition,
            }
        )
    return rows


def _judgement_rows(graded: Sequence[Graded], run: str, source: str) -> list[dict[str, Any]]:
    return [
        {
            "run": run,
            "trajectory": _trajectory(run, item),
            "judge": "recorded",
            "version": source,
            "valid": item.response.recorded,
            "reason": "",
        }
        for item in graded
        if item.response.recorded is not None
    ]


def _trajectory(run: str, item: Graded) -> str:
    return f"{run}:{item.response.step}:{item.group}:{item.slot}"
