"""The known forms of a question file: which column is the question, the gold, the options.

Every row is recognised by its own columns, in this order, unless the description of the data set
names them. What it says is taken as it is: a row that leaves a question open is refused, not
guessed.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from exgrpo.answers import last_box
from exgrpo.data_set_file import Columns, DataSetFile
from exgrpo.errors import UserError
from exgrpo.golds import NoGoldError, gold_of
from exgrpo.questions import Question, question_id
from exgrpo.row_files import Number, Row

# Why a row is no question.
UNREADABLE = "unreadable row"
NO_QUESTION = "no question"
NULL_GOLD = "null gold"
BAD_GOLD = "gold that cannot be graded"
BAD_OPTIONS = "options that cannot be lettered"
NO_OPTION = "letter without its option"
BEYOND = "place without its option"
# What is noted of a row that is one.
COUNTED = "answers that are the place of an option, counted from 0"

_LEVEL = re.compile(r"(?:Level )?(\d{1,9})(?:\.0)?")
_GSM8K = re.compile(r"####([^\n]*)\s*\Z")
_WORKED = re.compile(r"####|<<.*=.*>>")  # of GSM8K's solutions


class UnfitRowError(ValueError):
    """A row that is no question: the reason, one of those above, and what was found."""

    def __init__(self, reason: str, found: str) -> None:
        super().__init__(f"{reason}: {found}")
        self.reason, self.found = reason, found


@dataclass(frozen=True)
class Parts:
    """What a row holds, not yet checked. options: of a multiple choice, whose gold is a letter."""

    question: Any
    gold: Any
    level: Any = None
    options: Any = None
    notes: tuple[str, ...] = ()


Reader = Callable[[Row, int], Parts]


def cut_short(read: Reader, first: Mapping[Reader, str]) -> str | None:
    """Why rows read so are solutions without their last line: plain, in a file of GSM8K's form.

    first: the place of the first row of the file that is read so, for each reader.
    """
    if read is not _plain or _gsm8k not in first:
        return None
    return f"the answer does not end with a line `#### ...` as that of {first[_gsm8k]} does"


def reader_of(row: Row, columns: Columns | None) -> Reader | None:
    """How to read this row; None where its columns are not known."""
    if columns is not None:
        return lambda other, _: _named(other, columns)
    return next((read for fits, read in _SHAPES if fits(row)), None)


def question_of(
    row: Row, read: Reader, file: DataSetFile, source: str, seed: int
) -> tuple[Question, tuple[str, ...]]:
    """The question of a row, and notes on it. seed: orders options that have no order.

    Raises UnfitRowError.
    """
    parts = read(row, seed)
    text, notes = _asked(parts.question, file.instruction)
    kind = "boxed" if parts.options is None and file.kind is None else "mcq"
    if kind == "boxed":
        _require_open(row)
    options = None if parts.options is None else options_of(parts.options)
    counted = options is not None and isinstance(parts.gold, Number)
    gold = _letter_at(parts.gold, options or []) if counted else _gold(parts.gold)
    if kind == "mcq":
        letters = ascii_uppercase[: 26 if options is None else len(options)]
        if len(gold) != 1 or gold not in letters:
            raise UnfitRowError(NO_OPTION, f"the gold is {gold!r}, the letters are {letters}")
    if options is not None:
        right = options[ascii_uppercase.index(gold)]
        if options.count(right) > 1:
            raise UnfitRowError(BAD_OPTIONS, f"the right one stands twice: {_short(right)}")
        text = with_options(text, options)
    noted = (*parts.notes, *notes, *((COUNTED,) if counted else ()))
    return Question(text, gold, _level(parts.level), source, kind), noted


def _require_open(row: Row) -> None:
    """Without its options a multiple choice is another question. UnfitRowError if it has some."""
    beside = [name for name in ("options", "choices") if row.get(name)]
    if all(_text(row.get(letter)) for letter in "AB"):
        beside.append("A, B")
    if beside:
        raise UnfitRowError(
            BAD_OPTIONS,
            f"a choice of no known form, with options in {' and '.join(beside)}: give them as one "
            f"list and the letter of the right one, and name both under `columns`",
        )


def _letter_at(place: Number, options: Sequence[str]) -> str:
    """The letter of an option by its place, counted from 0 as MMLU does."""
    letters = dict(zip(map(str, range(len(options))), ascii_uppercase, strict=False))
    if place not in letters:
        reason = BEYOND if place.isdigit() else NO_OPTION
        raise UnfitRowError(
            reason, f"the place is {place}, those of options 0 to {len(letters) - 1}"
        )
    return letters[place]


def with_options(text: str, options: Sequence[str]) -> str:
    """A multiple choice as it is asked: the question, and below it a line for each option."""
    lines = [f"{letter}. {each}" for letter, each in zip(ascii_uppercase, options, strict=False)]
    return "\n".join([text.strip(), "", *lines])


def options_of(value: Any) -> list[str]:
    """The options of a multiple choice, 2 to 26 texts. Raises UnfitRowError."""
    options = [_text(each) for each in value] if isinstance(value, list) else []
    if not 2 <= len(options) <= len(ascii_uppercase) or None in options:
        raise UnfitRowError(BAD_OPTIONS, f"the options are {_short(value)}")
    return [str(each) for each in options]


def _text(value: Any) -> str | None:
    """Text, or a number as text, without the blanks around it; None for nothing and the rest."""
    if isinstance(value, int | float) and not isinstance(value, bool) and value == value:
        value = str(value)  # a NaN is what pandas writes for nothing
    return value.strip() or None if isinstance(value, str) else None


def _asked(value: Any, instruction: str) -> tuple[str, tuple[str, ...]]:
    text = _text(value)
    if text is None:
        raise UnfitRowError(NO_QUESTION, f"the question is {_short(value)}")
    if not instruction:
        return text, ()
    shorter = text.removesuffix(instruction.strip())
    if shorter == text:
        return text, ("questions without the instruction that is to be taken off",)
    if not shorter.strip():
        raise UnfitRowError(NO_QUESTION, "the instruction stands alone")
    return shorter.strip(), ()


def _gold(value: Any) -> str:
    try:
        return gold_of(value, "").strip()
    except NoGoldError:
        raise UnfitRowError(NULL_GOLD, "the gold is null") from None
    except UserError:
        raise UnfitRowError(BAD_GOLD, f"the gold is {_short(value)}") from None


def _level(value: Any) -> int | None:
    found = _LEVEL.fullmatch(_text(value) or "")
    return int(found[1]) if found else None


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


# --- Forms ---------------------------------------------------------------------------------------


def _named(row: Row, columns: Columns) -> Parts:
    for name in (columns.question, columns.answer):
        if _within(row, name) is _NOTHING:
            raise UnfitRowError(UNREADABLE, f"no column {name!r}; it has {', '.join(row)}")
    level = None if columns.level is None else _within(row, columns.level)
    options = None if columns.options is None else _some_options(_within(row, columns.options))
    return Parts(_within(row, columns.question), _within(row, columns.answer), level, options)


_NOTHING = object()


def _some_options(value: Any) -> Any:
    """The options as they are: a choice without any is no question with a box."""
    if value is None or value is _NOTHING:
        raise UnfitRowError(BAD_OPTIONS, "there are no options")
    return value


def _within(row: Any, name: str) -> Any:
    """The value of a key, `a.b` for the key b within a; _NOTHING where there is no such key."""
    for key in name.split("."):
        if not isinstance(row, dict) or key not in row:
            return _NOTHING
        row = row[key]
    return row


def _verl(row: Row, _: int) -> Parts:
    """The one user turn is the question; a system turn is dropped: prompts are ours."""
    turns = row.get("prompt")
    asked = [
        turn
        for turn in (turns if isinstance(turns, list) else [])
        if isinstance(turn, dict) and turn.get("role") != "system"
    ]
    if [turn.get("role") for turn in asked] != ["user"]:
        raise UnfitRowError(NO_QUESTION, f"not one user turn alone: {_short(turns)}")
    gold = _within(row, "reward_model.ground_truth")
    if gold is _NOTHING:
        found = _short(row["reward_model"])
        raise UnfitRowError(UNREADABLE, f"reward_model is no object with ground_truth: {found}")
    return Parts(asked[0].get("content"), gold, _within(row, "extra_info.level"))


def _gpqa(row: Row, seed: int) -> Parts:
    """The right answer stands first in the file: seed and question decide the order."""
    options = [row.get(name) for name in _GPQA]
    question = row.get("Question")
    order = list(range(len(options)))
    random.Random(f"{seed}-{question_id(str(question))}").shuffle(order)
    gold = ascii_uppercase[order.index(0)]
    return Parts(question, gold, options=[options[place] for place in order])


_GPQA = ("Correct Answer", "Incorrect Answer 1", "Incorrect Answer 2", "Incorrect Answer 3")


def _arc(row: Row, _: int) -> Parts:
    """The key is one of the labels, letters or 1 to 4; the gold is the letter of its place."""
    labels, options = _within(row, "choices.label"), _within(row, "choices.text")
    if not isinstance(labels, list) or not isinstance(options, list) or len(labels) != len(options):
        raise UnfitRowError(BAD_OPTIONS, f"the choices are {_short(row.get('choices'))}")
    key = _text(row.get("answerKey"))
    if key is None:
        return Parts(row.get("question"), None, options=options)
    if labels.count(key) != 1 or len(labels) > len(ascii_uppercase):
        raise UnfitRowError(NO_OPTION, f"the key is {key!r}, the labels are {_short(labels)}")
    return Parts(row.get("question"), ascii_uppercase[labels.index(key)], options=options)


def _lettered(row: Row, _: int) -> Parts:
    """The answer is a letter (MMLU-Pro) or, as a number, the place of an option (MMLU)."""
    letter, place = _text(row.get("answer")), _text(row.get("answer_index"))
    if letter and place and place not in (letter, str(ascii_uppercase.find(letter))):
        raise UnfitRowError(BAD_GOLD, f"answer is {letter!r}, answer_index is {place}")
    options = _some_options(row["options"] if "options" in row else row.get("choices"))
    return Parts(_problem(row), row.get("answer"), options=options)


def _olympiad(row: Row, _: int) -> Parts:
    """All answers of a list count, in any order: the grader reads them between commas."""
    gold = row.get("final_answer")
    if isinstance(gold, list) and len(gold) > 1:
        gold = ", ".join(_gold(each) for each in gold)
    context = _text(row.get("context"))
    question = _text(row.get("question"))
    notes = {
        "unit": "golds with a unit apart, which is not asked for",
        "error": "golds with a tolerance, which the grader does not grant",
    }
    return Parts(
        f"{context}\n\n{question}" if context and question else question,
        gold,
        notes=tuple(note for name, note in notes.items() if _text(row.get(name))),
    )


def _gsm8k(row: Row, _: int) -> Parts:
    found = _GSM8K.search(str(row.get("answer")))
    if row.get("answer") is not None and not found:
        raise UnfitRowError(BAD_GOLD, "the answer does not end with a line `#### ...`")
    return Parts(_problem(row), found[1] if found else None)


def _plain(row: Row, _: int) -> Parts:
    answer = row.get("answer")
    if isinstance(answer, str) and _is_worked(answer.strip()):
        raise UnfitRowError(BAD_GOLD, f"a worked solution and no answer: {_short(answer)}")
    return Parts(_problem(row), answer, row.get("level"))


def _is_worked(answer: str) -> bool:
    """Marks of GSM8K's solutions, or several lines that are no matrix."""
    return bool(_WORKED.search(answer)) or ("\n" in answer and "\\begin" not in answer)


def _solved(row: Row, _: int) -> Parts:
    """MATH: the gold is the last box of the solution."""
    solution = row.get("solution")
    box = last_box(solution) if isinstance(solution, str) else None
    if solution is not None and box is None:
        raise UnfitRowError(BAD_GOLD, "the solution has no box")
    return Parts(_problem(row), box, row.get("level"))


def _problem(row: Row) -> Any:
    return row["problem"] if "problem" in row else row.get("question")


def _has(*names: str) -> Callable[[Row], bool]:
    return lambda row: all(name in row for name in names)


def _asks_for(*names: str) -> Callable[[Row], bool]:
    return lambda row: ("problem" in row or "question" in row) and _has(*names)(row)


def _ends_like_gsm8k(row: Row) -> bool:
    return _asks_for("answer")(row) and bool(_GSM8K.search(str(row["answer"])))


_SHAPES: Sequence[tuple[Callable[[Row], bool], Reader]] = (
    (_has("prompt", "reward_model"), _verl),
    (_has("Question", "Correct Answer"), _gpqa),
    (_has("question", "choices", "answerKey"), _arc),
    (_asks_for("answer", "options"), _lettered),
    (_asks_for("answer", "choices"), _lettered),
    (_has("question", "final_answer"), _olympiad),
    (_ends_like_gsm8k, _gsm8k),
    (_asks_for("answer"), _plain),
    (_asks_for("solution"), _solved),
)
