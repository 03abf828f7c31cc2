r"""Equations between numbers in prose and LaTeX, and whether they hold.

An equation counts only if both sides are arithmetic of numbers alone and at least one has an
operation: `3 + 5 = 8`, `\frac{1}{4} = 0.25`, each link of `2 * 3 * 4 = 6 * 4 = 24`. What stands
beside it decides as well: a side that a variable, a unit, a function or a word like "of" touches is
left alone, since its value is not what is written. In a text that counts modulo a number, or in
another base, and where the text goes on to deny it, a link that does not hold is no error.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from exgrpo.judges.arithmetic import (
    COMMANDS,
    LONGEST,
    NUMBER,
    Quantity,
    UnreadableError,
    evaluate,
)
from exgrpo.judges.notation import plain
from exgrpo.judges.rounding import agree
from exgrpo.number_words import makes_another_value

MOST = 1000  # possible equations of one text that are looked at


@dataclass(frozen=True)
class Equation:
    """A link as written. holds: None where it cannot be told."""

    text: str
    holds: bool | None


_OTHER_ARITHMETIC = re.compile(
    r"\\[pb]?mod(?![a-z])|\\equiv|≡|\b(?:mod|modulo|modular|modulus|congruent|residues?|clock)\b"
    r"|\bbase[- ](?:\$?\d|two|three|four|five|six|seven|eight|nine|b\b)|_\{?\d+\}?\s*[-+*=]",
    re.I,
)

# What is said behind an equation that is not meant to hold: a trial, a correction, a contradiction.
_DENIED = re.compile(
    r"\b(?:incorrect|wrong|mistake|error|false|impossible|contradict\w*|invalid|fails?|unequal)\b"
    r"|\b(?:not|n't|n’t|never) (?:\w+ )?(?:true|correct|equal|possible|valid|hold|right|work)",
    re.I,
)
_SENTENCE = 120  # characters behind an equation in which that is looked for
_ROUNDED_PI = re.compile(r"(?<![\d.])3\.14(?:16|159\d*)?(?![\d.])")

_TOKEN = re.compile(
    rf"(?P<number>{NUMBER})|(?P<relation>[=≈])|(?P<word>[A-Za-z]+(?:['’][a-z]+)?)"
    r"|(?P<command>\\[a-zA-Z]+)|(?P<operator>[-+*/^!%…(){}\[\]])|(?P<stop>[,;:.?\n\"])"
    r"|(?P<other>\S)"
)
_MATHEMATICS = ("number", "operator")
_SHORT_WORDS = re.compile(
    r"is|so|we|to|or|as|at|by|if|it|he|in|an|be|on|of|no|us|my|do|up|cm|mm|km|kg|ml|ft|mg",
    re.I,
)
# Words that make another value of the number behind them; of one before: `makes_another_value`.
_BEFORE = re.compile(
    r"of|than|times|plus|minus|by|over|from|per|twice|double|triple|half|thrice|choose|mod"
    r"|modulo|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|ln|lg|exp|gcd|lcm|max|min|det"
    r"|abs|floor|ceil|sqrt|root|square|cube|squared|cubed|negative|dozen|hundred|thousand"
    r"|million|billion|sum|product|difference|quotient|average|mean|base|between|number"
    r"|function",
    re.I,
)
# "a total of 3 + 5 = 8", where "of" takes nothing of the sum.
_TOTAL = re.compile(r"\b(?:total|average|sum|product|difference|cost|price|amount)\s+of$")


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class _Side:
    """A side of a relation. first: none is before it in the chain."""

    text: str
    first: bool


def equations(text: str) -> Iterator[Equation]:
    """Every equation of numbers alone, in order; at most `MOST`. Never raises, linear in time."""
    readable = plain(text)
    excused = _OTHER_ARITHMETIC.search(text) is not None
    tokens = [
        _Token(str(found.lastgroup), found[0], found.start(), found.end())
        for found in _TOKEN.finditer(readable)
    ]
    relations = [index for index, token in enumerate(tokens) if token.kind == "relation"]
    looked_at = 0
    for index in relations:
        left, right = _left(readable, tokens, index), _right(readable, tokens, index)
        if left is None or right is None:
            continue
        if (looked_at := looked_at + 1) > MOST:
            return
        holds = _holds(left, right, tokens[index].text == "≈")
        if holds is None:
            continue
        if not holds and (
            excused
            or _DENIED.search(readable, tokens[index].end, _end(readable, tokens[index].end))
        ):
            holds = None
        yield Equation(f"{left.text} {tokens[index].text} {right.text}", holds)


def _end(text: str, place: int) -> int:
    """Where the sentence around a place is over: the line, or `_SENTENCE` characters on."""
    line = text.find("\n", place, place + _SENTENCE)
    return line if line >= 0 else min(len(text), place + _SENTENCE)


def _is_math(token: _Token) -> bool:
    return token.kind in _MATHEMATICS or (token.kind == "command" and token.text in COMMANDS)


def _left(text: str, tokens: list[_Token], relation: int) -> _Side | None:
    """What stands before a relation; None if that is no arithmetic of numbers alone."""
    end = relation
    start = end
    while start > 0 and _is_math(tokens[start - 1]):
        start -= 1
        if tokens[end - 1].end - tokens[start].start > LONGEST:
            return None
    before = tokens[start - 1] if start else None
    opened = _unmatched(tokens[start:end], backward=True)
    if opened is not None:
        if tokens[start + opened].text not in "([":
            return None
        start, before = start + opened + 1, None  # "(since 3 + 5 = 8)"
    if start == end:
        return None
    chained = before is not None and before.kind == "relation"
    if before is not None and not chained and not _ends_before(text, before, tokens[start]):
        return None
    return _Side(text[tokens[start].start : tokens[end - 1].end], not chained)


def _right(text: str, tokens: list[_Token], relation: int) -> _Side | None:
    """What stands behind a relation; None if that is no arithmetic of numbers alone."""
    start = relation + 1
    end = start
    while end < len(tokens) and _is_math(tokens[end]):
        end += 1
        if tokens[end - 1].end - tokens[start].start > LONGEST:
            return None
    behind = tokens[end] if end < len(tokens) else None
    closed = _unmatched(tokens[start:end], backward=False)
    if closed is not None:
        if tokens[start + closed].text not in ")]" and not _is_prose(behind):
            return None  # "= 2 (x + 1)"; but "= 8 (the sum ..." is an aside
        end, behind = start + closed, None
    if start == end:
        return None
    if behind is not None and behind.kind != "relation" and not _begins_behind(text, tokens, end):
        return None
    return _Side(text[tokens[start].start : tokens[end - 1].end], False)


def _unmatched(tokens: list[_Token], backward: bool) -> int | None:
    """The place of the bracket that is open at the relation's side, the one nearest to it."""
    depth = 0
    places = range(len(tokens))
    opening, closing = ("([{", ")]}")
    if backward:
        places, opening, closing = places[::-1], closing, opening
    open_at = []
    for place in places:
        if tokens[place].text in opening:
            open_at.append(place)
            depth += 1
        elif tokens[place].text in closing:
            if not depth:
                return place
            open_at.pop()
            depth -= 1
    return open_at[0] if open_at else None


def _is_prose(token: _Token | None) -> bool:
    if token is None or token.kind != "word":
        return False
    return len(token.text) > 2 or _SHORT_WORDS.fullmatch(token.text) is not None


def _ends_before(text: str, before: _Token, first: _Token) -> bool:
    """Whether the side that begins with `first` is apart from the token before it."""
    gap = before.end < first.start
    if before.kind == "stop":
        if before.text == ":":
            return not text[max(0, before.start - 2) : before.start].strip()[-1:].isdigit()
        return gap or before.text not in ",."
    if before.kind != "word" or not gap:
        return before.text in "<>" and before.kind == "other"
    if not _is_prose(before) or _BEFORE.fullmatch(before.text):
        return _TOTAL.search(text, max(0, before.end - 40), before.end) is not None
    if first.text in "-+":
        return text[first.end : first.end + 1].strip() != ""
    return first.kind != "operator" or first.text in "([{"


def _begins_behind(text: str, tokens: list[_Token], place: int) -> bool:
    """Whether the side that ends at `tokens[place]` is apart from it."""
    last, behind = tokens[place - 1], tokens[place]
    gap = last.end < behind.start
    if behind.kind == "stop":
        if behind.text == ":":  # a ratio or a division
            return not text[behind.end : behind.end + 2].strip()[:1].isdigit()
        return behind.text not in ",." or text[behind.end : behind.end + 1] in ("", *" \n")
    if behind.kind != "word" or not gap:
        return False
    if behind.text == "a":  # "= 60 a month"
        return place + 1 < len(tokens) and _is_prose(tokens[place + 1])
    return _is_prose(behind) and not makes_another_value(behind.text)


def _holds(left: _Side, right: _Side, approximate: bool) -> bool | None:
    """Whether any reading of both sides makes them equal; None if none can be read."""
    verdicts = [agree(*sides, approximate) for sides in _readings(left, right)]
    decided = [verdict for verdict in verdicts if verdict is not None]
    return any(decided) if decided else None


def _readings(left: _Side, right: _Side) -> Iterator[tuple[Quantity, Quantity]]:
    r"""Values of both sides: `2\frac{1}{3}` may be a sum or a product, 3.14 may stand for pi."""
    texts = [(left.text, right.text)]
    if _ROUNDED_PI.search(left.text):
        texts.append((_ROUNDED_PI.sub(r"\\pi ", left.text), right.text))
    for first, second in texts:
        for mixed in (True, False):
            try:
                sides = evaluate(first, mixed), evaluate(second, mixed)
            except UnreadableError:
                continue
            # "chapter 3 = 1 + 2": a label, or the end of what was not read; "x = 3 = 3": no news
            if not (sides[0].literal and (left.first or sides[1].literal)):
                yield sides
