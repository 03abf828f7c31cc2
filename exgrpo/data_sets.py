"""Questions of data sets: read, checked, kept apart. Every row left out is named with its reason.

Local copy or Hub: `exgrpo.data_set_file`. What a row says: `exgrpo.data_set_shapes`.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from exgrpo.data_set_file import DataSetFile, Found, data_sets, describe, find_files
from exgrpo.data_set_shapes import (
    BAD_GOLD,
    BEYOND,
    COUNTED,
    UNREADABLE,
    Reader,
    UnfitRowError,
    cut_short,
    question_of,
    reader_of,
)
from exgrpo.errors import UserError
from exgrpo.question_settings import Questions
from exgrpo.questions import Question, folded
from exgrpo.row_files import read_rows
from exgrpo.tables.manifest import file_hash

DUPLICATE = "duplicate"
TWO_GOLDS = "same question with two golds"
TOO_LONG = "prompt too long"
CONTROL = "control token in the text"
A_TEST = "also a test question"
A_VALIDATION = "also a validation question"
_FROM_ONE = "another row of its file has a place beyond its options: they may count from 1"

Ask = Callable[[Sequence[Question]], list[Question]]
Unfit = Callable[
    [Question], tuple[str, str] | None
]  # why a question is left out, and what is found


@dataclass(frozen=True)
class Rejected:
    """A row that is no question here. place: file and line or row; found: what decided it."""

    place: str
    reason: str
    found: str
    text: str  # how the question begins, or the row that has none


@dataclass(frozen=True)
class Placed:
    """A question and the first place that it stands at."""

    question: Question
    place: str


@dataclass(frozen=True)
class Loaded:
    """A data set as read: rows in all its files, what became of them, and what to know of it.

    title, licence, whole (rows that there are): what the description says. files: name -> SHA-256.
    notes: counts of what was taken as it is, by what it is.
    """

    name: str
    title: str
    licence: str
    origin: str
    rows: int
    whole: int | None
    placed: tuple[Placed, ...]
    rejected: tuple[Rejected, ...]
    files: dict[str, str]
    notes: Counter[str]

    @property
    def questions(self) -> list[Question]:
        return [each.question for each in self.placed]

    @property
    def summary(self) -> str:
        """One line: how many questions of what, what was left out and why, what to know."""
        parts = [f"{len(self.placed)} questions of {self.name} ({self.origin}, {self.rows} rows)"]
        if self.whole not in (None, self.rows):
            parts.append(f"its description says {self.whole} rows")
        if self.rejected:
            parts.append(f"left out: {counted(self.reasons)}")
        if self.notes:
            parts.append(f"taken as they are: {counted(self.notes)}")
        return "; ".join(parts)

    @property
    def reasons(self) -> Counter[str]:
        return Counter(each.reason for each in self.rejected)


def load_data_set(name: str, config: Path, seed: int) -> Loaded:
    """Every question of a data set, once each.

    seed: orders the options of a question that gives them without an order. UserError when there
    is no such description, no file, or no question in it.
    """
    described = describe(name, config)
    found = find_files(name, described)
    rejected: list[Rejected] = []
    notes: Counter[str] = Counter()
    rows = list(_read(found, described, name, seed, rejected, notes))
    placed, repeated = _once_each(rows)
    loaded = Loaded(
        name=name,
        title=described.title,
        licence=described.licence,
        origin=found.origin,
        rows=len(rows) + len(rejected),
        whole=described.rows,
        placed=tuple(placed),
        rejected=(*rejected, *repeated),
        files={str(file.relative_to(found.folder)): file_hash(file) for file in found.files},
        notes=notes,
    )
    if not placed:
        first = loaded.rejected[0] if loaded.rejected else None
        shown = f" First: {first.place}: {first.reason}: {first.found}" if first else ""
        raise UserError(
            f"data set {name!r}: no question in {', '.join(loaded.files)} ({found.origin}): "
            f"{loaded.rows} rows, none of use.{shown.rstrip('.')}{'.' if first else ''} "
            f"{_advice(first)}"
        )
    return loaded


def _advice(first: Rejected | None) -> str:
    """What to do about a file without a question, by the first row that is left out."""
    if first is None:
        return "The file is empty: give one that holds rows."
    if not first.text:  # it could not be read as a row
        return "Give JSONL, a JSON array (.json) or CSV in UTF-8, or Parquet, not packed."
    return (
        "If the file is right, say in the description which `columns` hold question and answer. "
        "Rows are lines or the items of one array, never the value of a key."
    )


def load_splits(
    settings: Questions, config: Path, ask: Ask, control: Collection[str] = ()
) -> dict[str, Loaded]:
    """Every split that comes from a data set: its questions with their prompts.

    ask: adds the prompt ids. control: see `with_prompts`. Left out are, beside the questions that
    cannot be asked, of validation those that are test questions (unless `validate_on_tests`), of
    train those of either. Then `limit` questions are drawn. UserError like `load_data_set`, and
    where too few are left.
    """
    loaded, taken = {}, dict[str, tuple[str, str]]()  # folded text -> why training may not ask it
    for split, asked in data_sets(settings).items():
        found = load_data_set(asked.dataset, config, settings.seed)
        is_test = split in settings.benchmarks
        if split == "train" or (split == "validation" and not settings.validate_on_tests):
            found = _without(found, partial(_taken, taken))
        found = with_prompts(found, ask, settings.max_prompt_tokens, control)
        if not found.placed:
            raise UserError(
                f"split {split!r}, data set {asked.dataset!r}: no question is left: "
                f"{counted(found.reasons)}. Choose other data sets or a higher max_prompt_tokens."
            )
        if asked.limit is not None:
            found = limited(found, asked.limit, settings.seed)
        loaded[split] = found
        if split == "train":  # the last one, and the largest: nothing is compared with it
            continue
        why = A_TEST if is_test else A_VALIDATION
        taken |= {folded(each.text): (why, f"{each.id} of {split}") for each in found.questions}
    return loaded


def with_prompts(loaded: Loaded, ask: Ask, longest: int, control: Collection[str] = ()) -> Loaded:
    """With prompt ids, and without the questions whose prompt has more than `longest` tokens.

    control: texts of control tokens (`exgrpo.prompts.control_texts`). A question that holds one is
    left out, too: in its prompt it would be that token, which ends a turn, say.
    """

    def controls(question: Question) -> tuple[str, str] | None:
        inside = sorted(text for text in control if text in question.text)
        return (CONTROL, f"it has {', '.join(map(repr, inside))}") if inside else None

    loaded = _without(loaded, controls)
    placed = tuple(
        replace(each, question=question)
        for each, question in zip(loaded.placed, ask(loaded.questions), strict=True)
    )
    return _without(
        replace(loaded, placed=placed),
        lambda each: (
            (TOO_LONG, f"{len(each.prompt_ids)} tokens") if len(each.prompt_ids) > longest else None
        ),
    )


def limited(loaded: Loaded, limit: int, seed: int) -> Loaded:
    """So many of the questions, in their order, drawn by seed and content: not the first ones."""
    if limit > len(loaded.placed):
        raise UserError(
            f"data set {loaded.name!r}: key `limit` is {limit}, and {len(loaded.placed)} questions "
            f"are left ({counted(loaded.reasons) or 'none left out'}). Lower it, or leave it out "
            f"for all of them."
        )
    ids = sorted((each.question.id for each in loaded.placed), key=partial(_drawn, seed=seed))
    chosen = set(ids[:limit])
    return replace(
        loaded, placed=tuple(each for each in loaded.placed if each.question.id in chosen)
    )


def counted(counts: Counter[str]) -> str:
    """`3 duplicate, 1 null gold`: counts as a reader wants them."""
    return ", ".join(f"{count} {what}" for what, count in counts.most_common())


def _drawn(identifier: str, seed: int) -> bytes:
    return hashlib.sha256(f"{seed}-{identifier}".encode()).digest()


def _read(
    found: Found,
    described: DataSetFile,
    name: str,
    seed: int,
    rejected: list[Rejected],
    notes: Counter[str],
) -> Iterator[Placed]:
    """Every row that is a question; the others are added to `rejected`."""

    def reject(note: str) -> None:  # label, place in the file, what is wrong
        place, _, what = note.removeprefix(label).partition(": ")
        rejected.append(Rejected(label + place, UNREADABLE, what, ""))

    for file in found.files:
        label = f"{file.relative_to(found.folder)}: "
        taken: list[tuple[Reader, tuple[str, ...], Placed]] = []
        first: dict[Reader, str] = {}
        before = len(rejected)
        for place, row in read_rows(file, label, reject, reject, numbers_as_text=True):
            try:
                read = reader_of(row, described.columns)
                if read is None:
                    raise UnfitRowError(
                        UNREADABLE, f"no form has just the columns {', '.join(row)}"
                    )
                first.setdefault(read, place)
                question, noted = question_of(row, read, described, name, seed)
            except UnfitRowError as error:
                rejected.append(Rejected(place, error.reason, error.found, str(row)[:80]))
                continue
            taken.append((read, noted, Placed(question, place)))
        beyond = any(row.reason == BEYOND for row in rejected[before:])
        for read, noted, each in taken:
            if why := cut_short(read, first):
                rejected.append(_rejected(each, BAD_GOLD, why))
            elif beyond and COUNTED in noted:
                rejected.append(_rejected(each, BEYOND, _FROM_ONE))
            else:
                notes.update(noted)
                yield each


def _once_each(rows: Iterable[Placed]) -> tuple[list[Placed], list[Rejected]]:
    """Each question once, at its first place; none of those that have two golds."""
    groups: dict[str, list[Placed]] = {}
    for each in rows:
        groups.setdefault(each.question.id, []).append(each)
    placed, rejected = [], []
    for group in groups.values():
        golds = sorted({each.question.gold for each in group})
        if len(golds) > 1:
            rejected += [_rejected(each, TWO_GOLDS, f"golds {golds}") for each in group]
            continue
        placed.append(group[0])
        rejected += [_rejected(each, DUPLICATE, f"of {group[0].place}") for each in group[1:]]
    return placed, rejected


def _without(loaded: Loaded, unfit: Unfit) -> Loaded:
    """Without the questions that there is a reason against."""
    placed, rejected = [], list(loaded.rejected)
    for each in loaded.placed:
        if reason := unfit(each.question):
            rejected.append(_rejected(each, *reason))
        else:
            placed.append(each)
    return replace(loaded, placed=tuple(placed), rejected=tuple(rejected))


def _taken(taken: Mapping[str, tuple[str, str]], question: Question) -> tuple[str, str] | None:
    return taken.get(folded(question.text))


def _rejected(each: Placed, reason: str, found: str) -> Rejected:
    return Rejected(each.place, reason, found, each.question.text[:80])
