r"""Whether two answers in normal form are the same, as far as exact numbers and words can say.

An answer is split into its structure (`exgrpo.structure`), and its scalars are compared as exact
numbers or as words. What that cannot settle is None: `exgrpo.algebra` decides it. Only the standard
library is needed, and little time.

Choices where opinions differ: a list without braces has no order, unless its members are named, but
its repeated members count; a pair needs its brackets, or the names of its coordinates; the base of
a number must be written; letters that spell something (ABC, cat) are no product, `ab` is one.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import cache
from itertools import chain

from exgrpo.normal_form import LONGEST_ANSWER
from exgrpo.structure import (
    bare,
    in_one_unknown,
    in_usual_order,
    is_letter,
    is_name,
    is_set,
    name,
    same_call,
    sides,
    structure,
    unnamed,
    without_names,
)

MOST_PARTS = 100  # members of a list, set or matrix that are compared
_LONGEST_NUMBER = 1_000  # digits, and size of an exponent, up to which fractions are computed

Decide = Callable[[str, str], bool | None]

# Before an equals sign: the answer is not, or not quite, what follows.
_DENIAL = re.compile(
    r"(?i)\b(?:not|never|no(?!\.)|isn|wrong|false|approximately|about|almost|nearly)\b"
)
_SET_OF_NUMBERS = re.compile(r"[<>]|\\(?:le|ge|cup|cap|infty|mathbb|setminus)(?![a-zA-Z])")
_INTERVALS = {"()", "[]", "(]", "[)"}
_CLOSED_INFINITY = re.compile(r"\\infty ?\]|\[-\\infty")
# Letters and the blanks and apostrophes between them.
_WORDS = re.compile(r"[^\W\d_]+(?:[ '][^\W\d_]+)*")
# Letters side by side that are read as a product; o is never one of them, it looks like a zero.
_PRODUCT = re.compile(r"[a-zA-Z]|[a-np-z][a-zA-NP-Z]|[A-NP-Z][a-np-z]")


def equal(gold: str, answer: str, decide: Decide) -> bool | None:
    """Whether two answers in normal form are the same; None where it stays open.

    Structures are compared part by part; `decide` compares two scalars (or two equations, which
    it gets with their `=`).
    """
    if gold == answer:
        return True
    if max(len(gold), len(answer)) > LONGEST_ANSWER:
        return False
    if any(_denied(side) for side in (gold, answer)):
        return False
    spelled = _words_equal(gold, answer)
    if spelled is not None:
        return spelled
    plain = bare(_unquoted(gold)), bare(_unquoted(in_one_unknown(gold, answer)))
    if plain != (gold, answer):
        return equal(*plain, decide)
    if bool(_CLOSED_INFINITY.search(gold)) != bool(_CLOSED_INFINITY.search(answer)):
        return False
    (kind, parts), (other, others) = structure(gold), structure(answer)
    if {kind, other} == {"list", "set"}:
        kind = other = "list"
    if kind != other:
        coordinates = _coordinates(kind, parts, other, others)
        if coordinates:
            return _all(equal(g, a, decide) for g, a in zip(*coordinates, strict=True))
        return _unlike_equal(gold, answer, decide)
    if kind == "scalar":
        return _scalars_equal(gold, answer, decide)
    if max(len(parts), len(others)) > MOST_PARTS:
        return False
    if kind in ("list", "set") and len(set(map(name, parts)) - {""}) > 1 and all(map(name, parts)):
        return _named_equal(parts, others, decide)
    if kind == "list":
        return _paired(parts, others, decide)
    if kind in ("set", "union"):
        same = cache(lambda g, a: _members_equal(g, a, decide))
        found = (_any(same(g, a) for a in others) for g in parts)
        wanted = (_any(same(g, a) for g in parts) for a in others)
        verdict = _all(chain(found, wanted))
        return decide(gold, answer) if kind == "union" and verdict is False else verdict
    if len(parts) != len(others):
        return False
    return _all(_members_equal(g, a, decide) for g, a in zip(parts, others, strict=True))


def _members_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    r"""Two members of what has several, where a set of one is not the same as its member."""
    return is_set(gold) == is_set(answer) and equal(gold, answer, decide)


def _denied(text: str) -> bool:
    before, *after = sides(text)
    return bool(after) and _DENIAL.search(before) is not None


def _paired(parts: list[str], others: list[str], decide: Decide) -> bool | None:
    """Whether two lists have the same members in any order, each as often."""
    if len(parts) != len(others):
        return False
    left, still_open = list(others), False
    for part in parts:
        verdicts = [_members_equal(part, other, decide) for other in left]
        if True in verdicts:
            left.pop(verdicts.index(True))
        elif None in verdicts:
            still_open = True
        else:
            return False
    return None if still_open else True


def exact(gold: str, answer: str) -> bool | None:
    """Whether two scalars are equal, where exact numbers settle it; else None."""
    if gold == answer:
        return True
    if _has_base(gold) or _has_base(answer):
        return False
    decimals = _decimal(gold), _decimal(answer)
    if None not in decimals:
        return decimals[0] == decimals[1]
    numbers = number(gold), number(answer)
    if None not in numbers:
        return numbers[0] == numbers[1]
    return None


def number(text: str) -> Fraction | None:
    r"""The rational number that a text in normal form spells; None for anything else.

    Repeating decimals are exact: `0.\overline{3}` is 1/3, and `0.\overline{9}` is 1.
    """
    if len(text) <= _LONGEST_NUMBER and (found := REPEATING.fullmatch(text)):
        return repeating(found)
    if decimal := _decimal(text):
        sign, digits, exponent = decimal
        if len(digits) + abs(exponent) > _LONGEST_NUMBER:
            return None
        return sign * Fraction(int(digits or "0")) * Fraction(10) ** exponent
    found = _FRACTION.fullmatch(text)
    if not found or len(text) > _LONGEST_NUMBER:
        return None
    upper = int(found["upper"] or found["left"])
    lower = int(found["lower"] or found["right"])
    if lower == 0:
        return None
    value = Fraction(int(found["whole"] or 0)) + Fraction(upper, lower)
    return -value if found["sign"] == "-" else value


def repeating(found: re.Match[str]) -> Fraction:
    """The value of a match of `REPEATING`."""
    sign, whole, after, period = found.groups()
    tail = Fraction(int(period), 10 ** len(after) * (10 ** len(period) - 1))
    value = Fraction(int(whole + after or "0"), 10 ** len(after)) + tail
    return -value if sign == "-" else value


REPEATING = re.compile(r"([-+]?)(\d*)\.(\d*)\\overline\{(\d+)\}")
_DECIMAL = re.compile(
    r"([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,9})|\\cdot ?10\^(\d|\{-?\d{1,9}\}))?"
)
_FRACTION = re.compile(
    r"(?P<sign>[-+]?)(?P<whole>\d+(?: |(?=\\)))?"
    r"(?:\\frac\{(?P<upper>-?\d+)\}\{(?P<lower>-?\d+)\}|(?P<left>\d+)/(?P<right>\d+))"
)
_BASED = re.compile(r"(?:\d|[0-9A-Z]{2})[0-9A-Z]*_(?:\d|\{\d+\})")


def _decimal(text: str) -> tuple[int, str, int] | None:
    """Sign, digits without outer zeros, exponent of ten: a canonical form of any length."""
    found = _DECIMAL.fullmatch(text)
    if not found or not (found[2] or found[3]):
        return None
    after = found[3] or ""
    shift = int(found[4] or (found[5] or "0").strip("{}"))
    digits = (found[2] + after).lstrip("0")
    significant = digits.rstrip("0")
    if not significant:
        return 0, "", 0
    exponent = shift - len(after) + len(digits) - len(significant)
    return -1 if found[1] == "-" else 1, significant, exponent


def _words_equal(gold: str, answer: str) -> bool | None:
    """Whether two texts spell the same words; None where one is no words, or both may be products.

    Blanks between words do not matter; upper and lower case do only in formulas and symbols.
    """
    quoted = '"' in (gold[:1], answer[:1])
    words = _words(gold, quoted), _words(answer, quoted)
    if not all(words):
        return None
    if quoted:
        return "".join(map(_folded, words[0])) == "".join(map(_folded, words[1]))
    letters = "".join(words[0]), "".join(words[1])
    return None if all(map(_PRODUCT.fullmatch, letters)) else letters[0] == letters[1]


def _words(text: str, quoted: bool) -> list[str]:
    r"""The words of a text of nothing else; else none. quoted: in `\text{}`, with hyphens."""
    plain = _unquoted(text).rstrip(" .,;:")
    hyphenated = re.split("[ -]", plain)
    if quoted and all(map(_is_word, hyphenated)):
        plain = " ".join(hyphenated)
    return plain.split() if _WORDS.fullmatch(plain) else []


def _is_word(letters: str) -> bool:
    """Whether letters side by side spell a word rather than a product: cat, no; not ab."""
    return len(letters) > 1 and not _PRODUCT.fullmatch(letters)


def _folded(word: str) -> str:
    ordinary = word.islower() or word.isupper() or word.istitle()
    return word.casefold() if ordinary and _is_word(word) else word


def _unquoted(text: str) -> str:
    return text.strip('" ') if text.startswith('"') else text


def _has_base(text: str) -> bool:
    return _BASED.fullmatch(text) is not None


def _scalars_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    if is_set(gold) and is_set(answer):
        return _members_equal(gold[2:-2], answer[2:-2], decide)
    if any(is_set(each) and is_set(each[2:-2]) for each in (gold, answer)):
        return False
    equation, claimed = sides(gold), sides(answer)
    if len(equation) == len(claimed) == 1:
        return decide(gold, answer)
    if not same_call(name(gold), name(answer)):
        return False
    value = unnamed(gold)
    if len(sides(value)) > 1:
        return decide(gold, answer)
    ends_in_it = _chain_equal(value, claimed, decide, name(gold))
    if len(equation) > 1 and len(claimed) > 1:  # they may be the same: y=2x, y-2x=0
        return _any([ends_in_it, ends_in_it is not True and decide(gold, answer)])
    return ends_in_it


def _chain_equal(value: str, claimed: list[str], decide: Decide, own: str) -> bool | None:
    """Whether a chain of equations ends in the value: each side before is it, or a name of it.

    own: the name that the gold has for it; the first in the chain is of the same. A letter may name
    the value behind it as well: 5=x.
    """
    if len(claimed) > MOST_PARTS:
        return False
    if len(claimed) > 1 and is_letter(claimed[-1], value):
        claimed = claimed[:-1]
    while len(claimed) > 1 and is_name(claimed[0], value, own):
        claimed, own = claimed[1:], ""
    return _all(equal(value, side, decide) for side in reversed(claimed))


def _coordinates(
    kind: str, parts: list[str], other: str, others: list[str]
) -> tuple[list[str], list[str]] | None:
    """The coordinates of a pair and of a list that names them: (1,2) and y=2,x=1; else None."""
    if (kind, other) == ("list", "()"):
        parts, others = others, parts
    elif (kind, other) != ("()", "list"):
        return None
    ordered = sorted(others, key=name)
    if len(parts) != len(others) or not in_usual_order(list(map(name, ordered))):
        return None
    return parts, list(map(unnamed, ordered))


def _unlike_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    """Two answers of unlike structure: equal only behind a name, or as sets of numbers."""
    plain = without_names(gold), without_names(answer)
    if plain != (gold, answer):
        return equal(*plain, decide)
    kinds = structure(gold)[0], structure(answer)[0]
    if {"list", "set"}.intersection(kinds) and _INTERVALS.intersection(kinds):
        return False  # two numbers are not all between them
    return decide(gold, answer) if _SET_OF_NUMBERS.search(gold + answer) else False


def _named_equal(parts: list[str], others: list[str], decide: Decide) -> bool | None:
    """A gold whose members have names of their own, x=2,y=3: the same by name or, without, order.

    Each member of the gold is an equation, so that the answer's must be one or a bare value.
    """
    if len(parts) != len(others):
        return False
    if all(map(name, others)):
        parts, others = sorted(parts, key=name), sorted(others, key=name)
        if list(map(name, parts)) != list(map(name, others)):
            return False
    elif any(map(name, others)):
        return False
    return _all(equal(g, a, decide) for g, a in zip(parts, others, strict=True))


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued `all`: False wins, then None."""
    seen = set()
    for verdict in verdicts:
        if verdict is False:
            return False
        seen.add(verdict)
    return None if None in seen else True


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    """Three-valued `any`: True wins, then None."""
    negated = _all(None if verdict is None else not verdict for verdict in verdicts)
    return None if negated is None else not negated
