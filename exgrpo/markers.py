"""Markers of a response that need no judge: code, repetition, and the exact check of a chain."""

import re
from dataclasses import dataclass

from exgrpo import chain

_STATEMENT = re.compile(r"^\s*(def \w+\(|class \w+|import \w+|from \w+ import )", re.M)
_STATEMENT_WORDS = ("def ", "class ", "import ", "from ")  # one is in every match; found far faster
_PRINT = re.compile(r"\bprint\(")
_SHORTEST, _LONGEST = 20, 200  # characters of a passage whose repetition counts


@dataclass(frozen=True)
class Markers:
    """code, repetition: always known. The rest is None where the task has no exact check.

    repetition: a passage of 20 to 200 characters stands three times or more in a row.
    """

    code: bool
    repetition: bool
    shortcut: bool | None = None
    step_errors: int | None = None
    chain_valid: bool | None = None


def mark(source: str, question: str, response: str) -> Markers:
    """Markers of a response (without its end token) to a question of the given source."""
    code = has_code(response)
    repetition = repeats(response)
    if source != chain.SOURCE:
        return Markers(code, repetition)
    checked = chain.check(question, response)
    return Markers(code, repetition, checked.shortcut, checked.step_errors, checked.valid)


def has_code(text: str) -> bool:
    """A code fence, a statement of Python at the start of a line, or a call of print."""
    return (
        "```" in text
        or ("print(" in text and _PRINT.search(text) is not None)
        or (any(word in text for word in _STATEMENT_WORDS) and _STATEMENT.search(text) is not None)
    )


def repeats(text: str) -> bool:
    """A passage of 20 to 200 characters stands three times or more in a row.

    With a passage of n characters, 2n in a row equal the one n places on. 2n are at least 40, so
    among them lies a whole block of 20 that starts at a multiple of 20: only these are looked for.
    """
    for start in range(0, len(text) - 2 * _SHORTEST, _SHORTEST):
        block = text[start : start + _SHORTEST]
        end = start + _LONGEST + _SHORTEST
        found = text.find(block, start + _SHORTEST, end)
        while found >= 0:
            if _thrice(text, start, found - start):
                return True
            found = text.find(block, found + 1, end)
    return False


def _thrice(text: str, start: int, lag: int) -> bool:
    """Around `start`, 2 * lag characters in a row equal the ones `lag` places on."""
    first, last = start, start
    while first > 0 and text[first - 1] == text[first - 1 + lag]:
        first -= 1
    while last + lag < len(text) and last - first < 2 * lag and text[last] == text[last + lag]:
        last += 1
    return last - first >= 2 * lag
