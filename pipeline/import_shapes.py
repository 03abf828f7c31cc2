"""The shapes of foreign model outputs that can be imported, and how a line of each is read.

A shape is recognised by the keys of its lines; other keys of a line are ignored.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from exgrpo.errors import UserError
from exgrpo.grading import check_gold
from exgrpo.questions import question_id

MOST_BAD_ROWS = 10  # bad rows that one message lists

Row = dict[str, Any]


@dataclass(frozen=True)
class Response:
    """One response to one question. `recorded` is the label in the file; None without one."""

    question: str
    gold: str
    text: str
    recorded: bool | None
    step: int = 1


@dataclass(frozen=True)
class Shape:
    """A known file shape: `keys` tell it, `kind` says how it is graded (`exgrpo.grading`)."""

    name: str
    keys: tuple[str, ...]
    kind: str
    meaning: str
    read: Callable[[Row, str], list[Response]]


@dataclass(frozen=True)
class Outputs:
    """A file of model outputs as read: its shape and all responses, in file order."""

    shape: Shape
    responses: list[Response]


def _gsm8k(row: Row, where: str) -> list[Response]:
    # Gold and responses both end in a line "A: <number>".
    gold = _text(row, "ground_truth", where).rpartition("A:")[2].strip()
    systems = [key for key, value in row.items() if isinstance(value, dict)]
    return [
        _response(row, gold, row[system].get("solution"), row[system].get("is_correct"), where)
        for system in systems
    ]


def _sampled(row: Row, where: str) -> list[Response]:
    texts, labels = row["code"], row["score"]
    if not isinstance(texts, list) or not isinstance(labels, list) or len(texts) != len(labels):
        raise UserError(f"{where}: keys `code` and `score` are no lists of one length. Mend them.")
    return [
        _response(row, row["answer"], text, label, where)
        for text, label in zip(texts, labels, strict=True)
    ]


def _nemo(row: Row, where: str) -> list[Response]:
    row = {**row, "question": row["problem"]}
    label = row["symbolic_correct"]
    return [_response(row, row["expected_answer"], row["generation"], label, where)]


def _openmath(row: Row, where: str) -> list[Response]:
    row = {**row, "question": row["problem"]}
    return [_response(row, row["expected_answer"], row["generated_solution"], None, where)]


def _generic(row: Row, where: str) -> list[Response]:
    step = row.get("step", 1)
    if not isinstance(step, int) or step < 0:
        raise UserError(f"{where}: key `step` is {step!r}. Give a whole number from 0.")
    return [_response(row, row["gold"], row["response"], row.get("correct"), where, step)]


SHAPES = (
    Shape(
        "gsm8k-openai",
        ("question", "ground_truth"),
        "prose",
        "one line a question; every key with an object (solution, is_correct) is one system, in "
        "file order; the answer follows `A:` in the last line",
        _gsm8k,
    ),
    Shape(
        "math-qwen",
        ("question", "answer", "code", "score", "pred_score"),
        "boxed",
        "one line a question; lists code (the responses) and score (their labels)",
        _sampled,
    ),
    Shape(
        "math500-rho",
        ("question", "answer", "code", "score"),
        "prose",
        "as math-qwen, from a base model that states its answer in prose",
        _sampled,
    ),
    Shape(
        "math-nemo",
        ("problem", "generation", "expected_answer", "symbolic_correct"),
        "boxed",
        "one line a response",
        _nemo,
    ),
    Shape(
        "openmathinstruct2",
        ("problem", "generated_solution", "expected_answer"),
        "boxed",
        "one line a response, no labels",
        _openmath,
    ),
    Shape(
        "generic",
        ("question", "gold", "response"),
        "boxed",
        "one line a response; optional: step, correct (a recorded label), run (one run a file)",
        _generic,
    ),
)


def read_outputs(file: Path) -> Outputs:
    """Read a JSONL or Parquet file whose shape is known.

    UserError when the file is missing, empty or of an unknown shape, and when rows are bad: no
    JSON, a missing key, a null gold, a response that is no text. All bad rows are named, at most
    ten, and none of the file is used.
    """
    rows: list[tuple[str, Row]] = []
    bad: list[str] = []
    for where, row in _rows(file):
        if isinstance(row, dict):
            rows.append((where, row))
        else:
            bad.append(f"{where}: {row}")
    if not rows and not bad:
        raise UserError(f"{file}: the file is empty. Give one JSON object a line.")
    shape = _recognise(file, rows[0][1]) if rows else None
    responses: list[Response] = []
    golds: dict[str, tuple[str, str]] = {}
    for where, row in rows:
        try:
            assert shape is not None
            found = _read(shape, row, where)
            for response in found:
                _check_one_gold(response, golds, where)
            responses += found
        except UserError as error:
            bad.append(str(error))
    _check_one_run(file, rows)
    if bad or shape is None:
        shown = "\n".join(f"  {line}" for line in bad[:MOST_BAD_ROWS])
        more = f"\n  and {len(bad) - MOST_BAD_ROWS} more" if len(bad) > MOST_BAD_ROWS else ""
        raise UserError(f"{file}: nothing was imported: {len(bad)} bad rows:\n{shown}{more}")
    return Outputs(shape, responses)


def _rows(file: Path) -> Iterator[tuple[str, Row | str]]:
    """Place and content of each row; in place of a row that cannot be read, what is wrong."""
    try:
        if file.suffix == ".parquet":
            for number, row in enumerate(pl.read_parquet(file, glob=False).to_dicts()):
                yield f"row {number}", row
            return
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).splitlines()[0]
        raise UserError(
            f"{file}: cannot be read: {reason}. Give a JSONL (UTF-8) or Parquet file."
        ) from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        yield (
            f"line {number}",
            _object(line) or f"no JSON object: {line[:60]!r}. Mend or remove it.",
        )


def _object(line: str) -> Row | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _recognise(file: Path, row: Row) -> Shape:
    for shape in SHAPES:
        if set(shape.keys) <= row.keys():
            return shape
    known = "\n".join(f"  {s.name}: {', '.join(s.keys)} ({s.meaning})" for s in SHAPES)
    raise UserError(
        f"{file}: unknown shape: its first row has the keys {', '.join(row) or 'none'}.\n"
        f"Known shapes and the keys that tell them:\n{known}\n"
        f"Rename the keys to one of these; `generic` fits any file."
    )


def _read(shape: Shape, row: Row, where: str) -> list[Response]:
    if missing := [key for key in shape.keys if key not in row]:
        raise UserError(
            f"{where}: misses the keys {', '.join(missing)} of the shape {shape.name}. "
            f"Add them or remove the row."
        )
    if not (responses := shape.read(row, where)):
        raise UserError(f"{where}: holds no response. Add one or remove the row.")
    return responses


def _response(
    row: Row, gold: object, text: object, label: object, where: str, step: int = 1
) -> Response:
    if not isinstance(text, str):
        raise UserError(f"{where}: a response is {text!r}. Give text, or remove the row.")
    if label is not None and not isinstance(label, bool):
        raise UserError(f"{where}: a recorded label is {label!r}. Give true, false or null.")
    return Response(_text(row, "question", where), check_gold(gold, where), text, label, step)


def _text(row: Row, key: str, where: str) -> str:
    if not isinstance(row[key], str) or not row[key].strip():
        raise UserError(f"{where}: key `{key}` is {row[key]!r}. Give text, or remove the row.")
    return str(row[key])


def _check_one_gold(response: Response, golds: dict[str, tuple[str, str]], where: str) -> None:
    gold, first = golds.setdefault(question_id(response.question), (response.gold, where))
    if gold != response.gold:
        raise UserError(
            f"{where}: gold {response.gold!r}, but {first} gives the same question the gold "
            f"{gold!r}. Make them agree, or remove one."
        )


def _check_one_run(file: Path, rows: list[tuple[str, Row]]) -> None:
    runs = sorted({str(row["run"]) for _, row in rows if "run" in row})
    if len(runs) > 1:
        raise UserError(
            f"{file}: holds several runs: {', '.join(runs[:5])}. Their groups must not mix: "
            f"split the file by `run` and import each part under its own --name."
        )
