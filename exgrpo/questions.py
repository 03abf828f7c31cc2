"""A question, its content-hash id, and its JSONL file."""

import hashlib
import json
import random
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from exgrpo import arithmetic, chain, latex
from exgrpo.errors import UserError
from exgrpo.grading import check_gold
from exgrpo.question_settings import Questions
from exgrpo.records import write_whole

# What two copies of a question may differ in: blanks, dollar signs, marks of spacing, and braces
# around a single sign.
_LAYOUT = re.compile(r"(?:\\[,;:! ()]|\\(?:left|right|displaystyle)(?![A-Za-z])|(?<!\\)\$|\s)+")
_ALONE = re.compile(r"(?<!\\)\{\s*(\w|\\[A-Za-z]+)\s*\}")
_NO_GAP = re.compile(r"(?<!\d) | (?!\d)")

SPLITS = ("train", "validation", "test_id", "test_ood")  # those that can be made
KINDS = ("boxed", "mcq")


@dataclass(frozen=True)
class Question:
    """A question as asked, its gold answer (always text) and its level (chain: steps).

    source: the task that made it, or the data set that it is from. kind: `boxed`, or `mcq` for a
    multiple choice, whose options are part of the text and whose gold is a letter. prompt_ids: the
    token ids of its prompt (`exgrpo.prompts`), () where none was made yet; no part of what the
    question is.
    """

    text: str
    gold: str
    level: int | None
    source: str
    kind: str = "boxed"
    prompt_ids: tuple[int, ...] = field(default=(), compare=False)

    @cached_property
    def id(self) -> str:
        return question_id(self.text)


def question_id(text: str) -> str:
    """Sixteen hex digits of the SHA-256 of the stripped text: the same question, the same id."""
    return hashlib.sha256(text.strip().encode()).hexdigest()[:16]


def folded(text: str) -> str:
    """The text without its layout: near-copies of a question are alike in it.

    Digits stay apart, and so do the arguments of a fraction: `1 23` is not `12 3`. Signs and other
    brackets stay: an open interval is not a closed one, 2^{n+1} not 2^n+1.
    """
    return _NO_GAP.sub("", _LAYOUT.sub(" ", _ALONE.sub(r"\1", latex.braced(text))))


def make_splits(
    settings: Questions, loaded: Mapping[str, list[Question]] | None = None
) -> dict[str, list[Question]]:
    """Every split by its name: made by the built-in task, decided by the seed alone, or `loaded`.

    Made splits are disjoint by id from each other and from the loaded ones. Levels are spread
    evenly; test_ood has the levels above `max_level`. A split of 0 questions is left out. UserError
    when there are not enough distinct questions of a level.
    """
    loaded = loaded or {}
    rng = random.Random(f"questions-{settings.seed}")
    in_distribution = range(settings.min_level, settings.max_level + 1)
    beyond = range(settings.max_level + 1, settings.max_ood_level + 1)
    taken = {question.id for members in loaded.values() for question in members}
    splits = {}
    for split in SPLITS:
        if split in loaded:
            splits[split] = loaded[split]
        elif count := getattr(settings, split):
            levels = list(beyond if split == "test_ood" else in_distribution)
            wanted = [levels[index % len(levels)] for index in range(count)]
            splits[split] = [_draw_new(settings.task, level, taken, rng) for level in wanted]
    return splits | {name: loaded[name] for name in settings.benchmarks}


def _draw_new(task: str, level: int, taken: set[str], rng: random.Random) -> Question:
    for _ in range(1000):
        question = _draw(task, level, rng)
        if question.id not in taken:
            taken.add(question.id)
            return question
    exist = f"{10 * 30**level} exist" if task == chain.SOURCE else "a thousand draws found none"
    raise UserError(
        f"settings.questions: no new question of level {level} left: {exist} and the "
        f"splits ask for nearly all of them. Lower train, validation or test_id, or raise "
        f"min_level."
    )


def _draw(task: str, level: int, rng: random.Random) -> Question:
    if task == arithmetic.SOURCE:
        text, gold = arithmetic.draw(level, rng)
    else:
        text = chain.draw(level, rng)
        gold = chain.solve(text)
    return Question(text, gold, level, task)


def save(questions: Iterable[Question], path: Path) -> None:
    """Write a JSONL file, whole or not at all."""
    lines = [json.dumps({"id": question.id, **asdict(question)}) for question in questions]
    write_whole(path, "".join(line + "\n" for line in lines).encode())


def load(path: Path) -> list[Question]:
    """Read a JSONL file with the keys text, gold, level, source; kind and prompt_ids may be there.

    UserError on a missing or empty file, a line that is no JSON, a missing key, a null gold or
    another value that no question has; it names the file and the line.
    """
    if not path.exists():
        raise UserError(f"{path}: no such question file. Run `exgrpo questions` first.")
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # text may hold other line ends
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: no UTF-8 text: {error}. Save the file as UTF-8.") from error
    if not lines[-1]:
        lines.pop()
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
        kind, prompt_ids = row.get("kind", "boxed"), row.get("prompt_ids", [])
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
    if kind not in KINDS:
        raise UserError(f"{where}: key `kind` is {kind!r}. Give one of {', '.join(KINDS)}.")
    if not _are_token_ids(prompt_ids):
        raise UserError(
            f"{where}: key `prompt_ids` is no list of token ids. Remove it, or make the file again "
            f"with `exgrpo questions`."
        )
    checked = check_gold(gold, f"{where}: key `gold`")
    return Question(text, checked, level, source, kind, tuple(prompt_ids))


def _are_token_ids(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
