"""Markers of a response that need no judge: code, repetition, and the exact check of a chain."""

import re
from dataclasses import dataclass

from exgrpo import chain

_CODE = re.compile(r"```|^\s*(def \w+\(|class \w+|import \w+|from \w+ import )|\bprint\(", re.M)
_REPEATED = re.compile(r"(.{20,200}?)\1{2,}", re.S)


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
    code = _CODE.search(response) is not None
    repetition = len(response) >= 60 and _REPEATED.search(response) is not None
    if source != chain.SOURCE:
        return Markers(code, repetition)
    checked = chain.check(question, response)
    return Markers(code, repetition, checked.shortcut, checked.step_errors, checked.valid)
