"""Text for the terminal: model output and file names may hold escape sequences."""

import re

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def printable(text: str) -> str:
    """The text with control characters written out (tab and newline stay): shown, not obeyed."""
    return CONTROL.sub(lambda match: repr(match[0])[1:-1], text)
