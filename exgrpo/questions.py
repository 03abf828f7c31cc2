"""A question, its content-hash id, and its JSONL file."""

import hashlib
import json
import random
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from exgrpo import chain
from exgrpo.errors import UserError
from exgrpo.grading import check_gold
from exgrpo.question_settings import Questions
from exgrpo.records import write_whole

SPLITS = ("train", "validation", "test_id", "test_ood")


@dataclass(frozen=True)
class Question:
    """A question as asked, its gold answer (always text) and its level (chain: steps).

    source: the task that made it, or the data set that it is from. kind: `boxed`, or `mcq` for a
    multiple choice, whose options are part of the text and whose gold is a letter.
    """

    text: str
    gold: str
    level: int | None
    source: str
    kind: str = "boxed"

    @cached_property
    def id(self) -> str:
        return question_id(self.text)


def question_id(text: str) -> str:
    """Sixteen hex digits of the SHA-256 of the stripped text: the same question, the same id."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def make_splits(settings: Questions) -> dict[str, list[Question]]:
    """The four splits of the built-in task, disjoint by id, decided by the seed alone.

    Levels are spread evenly; test_ood has the levels above `max_level`. UserError when there are
    not enough distinct questions of a level.
    """
    rng = random.Random(f"questions-{settings.seed}")
    in_distribution = range(settings.min_level, settings.max_level + 1)
    beyond = range(settings.max_level + 1, settings.max_ood_level + 1)
    sizes = {split: getattr(settings, split) for split in SPLITS}
    taken: set[str] = set()
    splits = {}
    for split in SPLITS:
        levels = list(beyond if split == "test_ood" else in_distribution)
        wanted = [levels[index % len(levels)] for index in range(sizes[split])]
        splits[split] = [_draw_new(level, taken, rng) for level in wanted]
    return splits


def _draw_new(level: int, taken: set[str], rng: random.Random) -> Question:
    for _ in range(1000):
        text = chain.draw(level, rng)
        question = Question(text, chain.solve(text), level, chain.SOURCE)
        if question.id not in taken:
            taken.add(question.id)
            return question
    possible = 10 * 30**level
    raise UserError(
        f"settings.questions: no new question of level {level} left: {possible} exist and the "
        f"splits ask for nearly all of them. Lower train, validation or test_id, or raise "
        f"min_level."
    )


def save(questions: Iterable[Question], path: Path) -> None:
    """Write a JSONL file, whole or not at all."""
    lines = [json.dumps({"id": question.id, **asdict(question)}) for question in questions]
    write_whole(path, "".join(line + "\n" for line in lines).encode())


def load(path: Path) -> list[Question]:
    """Read a JSONL file with the keys text, gold, level, source.

    UserError on a missing or empty file, a line that is no JSON, a missing key or a null gold;
    it names the file and the line.
    """
    if not path.exists():
        raise UserError(f"{path}: no such question file. Run `exgrpo questions` first.")
    try:
        lines = path.read_text().splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: no UTF-8 text: {error}. Save the file as UTF-8.") from error
    questions = [
        _read(line, f"{path}, line {number}") for number, line in enumerate(lines, start=1)
    ]
    if not questions:
        raise UserError(
            f"{path}: the question file is empty. Remove it and make it again with "
            f"`exgrpo questions`, or fill it with one JSON object a line."
        )
    return questions


def _read(line: str, where: str) -> Question:
    try:
        row = json.loads(line)
        text, gold, level, source = (row[key] for key in ("text", "gold", "level", "source"))
    except json.JSONDecodeError as error:
        raise UserError(
            f"{where}: no valid JSON ({error.msg}): {line[:80]!r}. Mend or remove the line."
        ) from error
    except (KeyError, TypeError) as error:
        raise UserError(
            f"{where}: needs the keys text, gold, level, source; found {line[:80]!r}. "
            f"Add the missing key."
        ) from error
    if not isinstance(text, str) or not text.strip():
        raise UserError(f"{where}: key `text` is {text!r}. Give the question as text.")
    if level is not None and not isinstance(level, int):
        raise UserError(f"{where}: key `level` is {level!r}. Give a whole number, or null.")
    if source == chain.SOURCE and not chain.is_question(text):
        raise UserError(f"{where}: key `text` is {text!r}, which is no chain such as `7+5*3=`.")
    return Question(text, check_gold(gold, f"{where}: key `gold`"), level, source)
