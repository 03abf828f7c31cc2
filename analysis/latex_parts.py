r"""The maths in a response: `\(…\)`, `\[…\]`, `$$…$$`, `$…$`, and `\boxed{…}` standing alone.

A model may write anything. What a typesetter could be tricked with, or what is no whole piece of
maths, stays text: the parts joined are the response, letter by letter.
"""

import re
from dataclasses import dataclass

LONGEST = 2000  # characters of one piece of maths

# Links, pictures, HTML, and macros that can call themselves: KaTeX refuses most, we ask for none.
HOSTILE = re.compile(
    r"\\(href|url|includegraphics|html\w*|def|[gex]def|let|futurelet|global|long|newcommand|"
    r"renewcommand|providecommand|expandafter|noexpand|csname|input|include|write|catcode|char|"
    r"special|require|class|style|cssId|unicode)(?![a-zA-Z])"
)

_OPENING = re.compile(r"\\\\|\\\$|\\\(|\\\[|\$\$|\$|\\boxed\s?\{")
_CLOSING = {r"\(": r"\)", r"\[": r"\]", "$$": "$$", "$": "$"}


@dataclass(frozen=True)
class Part:
    """A piece of a response as it is written; `maths`: what to typeset of it, None for text."""

    raw: str
    maths: str | None = None


def latex_parts(text: str) -> list[Part]:
    """The response in pieces whose `raw` joined are the response; linear in its length."""
    braces = _braces(text)
    parts: list[Part] = []
    done = place = 0  # text before `done` is in the parts
    while found := _OPENING.search(text, place):
        piece = _piece(text, found, braces)
        if piece is None:
            place = found.end()
            continue
        if found.start() > done:
            parts.append(Part(text[done : found.start()]))
        parts.append(piece)
        done = place = found.start() + len(piece.raw)
    if done < len(text):
        parts.append(Part(text[done:]))
    return parts


def _piece(text: str, found: re.Match[str], braces: dict[int, int]) -> Part | None:
    """The maths that opens here, if it is whole, short and harmless."""
    opening, start = found.group(), found.end()
    if opening.startswith(r"\boxed"):
        raw = maths = text[found.start() : braces.get(start, 0)]
    elif opening in _CLOSING:
        closing = _CLOSING[opening]
        end = _closed(text, start, closing)
        maths = text[start:end] if end else ""
        raw = text[found.start() : end + len(closing)] if end else ""
        if opening == "$" and not _like_maths(text, maths, start, end or 0):
            return None
    else:
        return None  # an escaped backslash or dollar
    fine = maths.strip() and len(maths) <= LONGEST and _harmless(maths)
    return Part(raw, maths.strip()) if fine else None


def _closed(text: str, start: int, closing: str) -> int | None:
    """Where the closing mark is, within `LONGEST` characters, not behind a backslash."""
    last = min(len(text), start + LONGEST + len(closing))
    place = start
    while (place := text.find(closing, place, last)) >= 0:
        before = text[start:place]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return place
        place += 1
    return None


def _braces(text: str) -> dict[int, int]:
    """For the place behind each opening brace that has a partner, the place behind the partner."""
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for found in re.finditer(r"\\.|[{}]", text, re.DOTALL):
        if found.group() == "{":
            opened.append(found.end())
        elif found.group() == "}" and opened:
            pairs[opened.pop()] = found.end()
    return pairs


def _like_maths(text: str, maths: str, start: int, end: int) -> bool:
    """`$…$` on one line and tight, as Pandoc reads it: `$5 and $6` are prices."""
    tight = bool(maths) and not maths[0].isspace() and not maths[-1].isspace()
    return tight and "\n" not in maths and not text[end + 1 : end + 2].isdigit()


def _harmless(maths: str) -> bool:
    """Braces in pairs, no dollar, which would end the maths early, and no macro of `HOSTILE`."""
    bare = re.sub(r"\\[\\{}$]", "", maths)
    depth = 0
    for brace in re.findall(r"[{}]", bare):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0 and "$" not in bare and not HOSTILE.search(maths)
