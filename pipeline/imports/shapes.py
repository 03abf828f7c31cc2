"""Model outputs with a gold answer, in the shapes that are known: our grade decides what is right.

A shape is recognised by the keys of its lines. A label that a file carries is kept beside ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import ascii_uppercase

from exgrpo.data_set_shapes import UnfitRowError, options_of, with_options
from exgrpo.errors import UserError
from exgrpo.golds import gold_of
from exgrpo.row_files import Row
from pipeline.imports.rows import ONE_RUN, Place, Source, asked, step_of, text, truth


@dataclass(frozen=True)
class Shape:
    """A known file shape: `keys` tell it, `kind` says how it is graded (`exgrpo.grading`).

    columns: their key -> our column; `*.x` is the key x of any object.
    """

    name: str
    keys: tuple[str, ...]
    kind: str
    meaning: str
    columns: dict[str, str]
    read: Callable[[Row, Place], list[Row]]


def _gsm8k(row: Row, at: Place) -> list[Row]:
    # Gold and responses both end in a line "A: <number>".
    gold = row["ground_truth"]
    if gold is not None:
        gold = text(row, "ground_truth", at).rpartition("A:")[2].strip()
    systems = [key for key, value in row.items() if isinstance(value, dict)]
    return [
        _response(row, gold, row[system].get("solution"), row[system].get("is_correct"), at)
        for system in systems
    ]


def _sampled(row: Row, at: Place) -> list[Row]:
    texts, labels = row["code"], row["score"]
    if not isinstance(texts, list) or not isinstance(labels, list) or len(texts) != len(labels):
        raise UserError(
            f"{at.where}: keys `code` and `score` are no lists of one length. Mend them."
        )
    return [
        _response(row, row["answer"], each, label, at)
        for each, label in zip(texts, labels, strict=True)
    ]


def _nemo(row: Row, at: Place) -> list[Row]:
    row = {**row, "question": row["problem"]}
    return [_response(row, row["expected_answer"], row["generation"], row["symbolic_correct"], at)]


def _openmath(row: Row, at: Place) -> list[Row]:
    row = {**row, "question": row["problem"]}
    return [_response(row, row["expected_answer"], row["generated_solution"], None, at)]


def _mmlu_pro(row: Row, at: Place) -> list[Row]:
    gold, chosen = row["answer"], row["pred"]
    try:
        options = options_of(row["options"])
    except UnfitRowError as error:
        raise UserError(f"{at.where}: {error}. Mend them, or remove the row.") from error
    letters = ascii_uppercase[: len(options)]
    if gold is not None and gold not in list(letters):
        raise UserError(
            f"{at.where}: the answer is {gold!r}, the letters are {letters}. Mend it, or remove "
            f"the row."
        )
    question = with_options(text(row, "question", at), options)
    right = None if chosen is None else chosen == gold
    return [_response({"question": question}, gold, row["generated_text"], right, at)]


def _generic(row: Row, at: Place) -> list[Row]:
    step = step_of(row.get("step", 1), "step", at)
    return [_response(row, row["gold"], row["response"], row.get("correct"), at, step)]


def _response(
    row: Row, gold: object, response: object, label: object, at: Place, step: int = 1
) -> Row:
    if not isinstance(response, str):
        raise UserError(f"{at.where}: a response is {response!r}. Give text, or remove the row.")
    return asked(
        text(row, "question", at),
        step=step,
        gold=gold_of(gold, at.where),
        response=response,
        recorded=truth(label, "correct", at),
    )


SAMPLED = {
    "question": "text, question",
    "answer": "gold",
    "code": "response",
    "score": "judgements",
}

SHAPES = (
    Shape(
        "gsm8k-openai",
        ("question", "ground_truth"),
        "prose",
        "one line a question; every key with an object (solution, is_correct) is one system, in "
        "file order; the answer follows `A:` in the last line",
        {"question": "text, question", "ground_truth": "gold", "*.solution": "response"}
        | {"*.is_correct": "judgements"},
        _gsm8k,
    ),
    Shape(
        "math-qwen",
        ("question", "answer", "code", "score", "pred_score"),
        "boxed",
        "one line a question; lists code (the responses) and score (their labels)",
        SAMPLED,
        _sampled,
    ),
    Shape(
        "math500-rho",
        ("question", "answer", "code", "score"),
        "prose",
        "as math-qwen, from a base model that states its answer in prose",
        SAMPLED,
        _sampled,
    ),
    Shape(
        "math-nemo",
        ("problem", "generation", "expected_answer", "symbolic_correct"),
        "boxed",
        "one line a response",
        {"problem": "text, question", "generation": "response"}
        | {"expected_answer": "gold", "symbolic_correct": "judgements"},
        _nemo,
    ),
    Shape(
        "openmathinstruct2",
        ("problem", "generated_solution", "expected_answer"),
        "boxed",
        "one line a response, no labels",
        {"problem": "text, question", "generated_solution": "response", "expected_answer": "gold"},
        _openmath,
    ),
    Shape(
        "mmlu-pro",
        ("question", "options", "answer", "generated_text", "pred"),
        "prose+mcq",
        "one line a response to a multiple choice; pred is the letter that was read, or null",
        {"question": "text, question", "options": "text", "generated_text": "response"}
        | {"answer": "gold", "pred": "judgements"},
        _mmlu_pro,
    ),
    Shape(
        "generic",
        ("question", "gold", "response"),
        "boxed",
        "one line a response; optional: step, correct (a recorded label), run (one run a file)",
        {"question": "text, question", "gold": "gold", "response": "response"}
        | {"step": "step", "correct": "judgements", "run": ONE_RUN},
        _generic,
    ),
)


def known() -> str:
    """The shapes and the keys that tell them, one a line."""
    return "\n".join(f"  {s.name}: {', '.join(s.keys)} ({s.meaning})" for s in SHAPES)


def find(path: Path, row: Row) -> Source | None:
    """The file as a log of the first shape whose keys its first row has; None if there is none."""
    shape = next((shape for shape in SHAPES if set(shape.keys) <= row.keys()), None)
    return source(path, shape) if shape else None


def source(path: Path, shape: Shape) -> Source:
    def read(row: Row, at: Place) -> list[Row]:
        if missing := [key for key in shape.keys if key not in row]:
            raise UserError(
                f"{at.where}: misses the keys {', '.join(missing)} of the shape {shape.name}. "
                f"Add them or remove the row."
            )
        if not (found := shape.read(row, at)):
            raise UserError(f"{at.where}: holds no response. Add one or remove the row.")
        return found

    return Source(shape.name, path, [path], shape.columns, read, shape.kind)
