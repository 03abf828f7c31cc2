r"""Whether two answers in normal form are the same, as far as exact numbers and words can say.

An answer is split into its structure (list, set, tuple, interval, union, matrix, ratio, equation),
and its scalars are compared as exact numbers or as words. What that cannot settle is None:
`exgrpo.algebra` decides it. Only the standard library is needed, and little time.

Choices where opinions differ: a list without braces has no order, unless its members are named, but
its repeated members count; a pair needs its brackets; the base of a number must be written.
"""

import re
from collections.abc import Callable, Iterable
from fractions import Fraction

from exgrpo.normal_form import LONGEST_ANSWER

MOST_PARTS = 100  # members of a list, set or matrix that are compared
_LONGEST_NUMBER = 1_000  # digits, and size of an exponent, up to which fractions are computed

Decide = Callable[[str, str], bool | None]

# What may stand before a value as its name: x, x_1, \alpha, f(x), f(2), AB, \angle ABC, Area.
_GREEK = (
    "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau"
    "|phi|varphi|chi|psi|omega|ell|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
_LETTER = rf"(?:[a-zA-Z]|\\(?:{_GREEK})(?![a-zA-Z])|\\(?:vec|hat|tilde)\{{\w\}})"
_NAME = re.compile(
    rf"{_LETTER}(?:_\w|_\{{[^{{}}=]*\}})?'*(?:\([a-z](?:,[a-z])*\))?"
    r"|[fghFGHPpqQ](?:_\w)?'*\([^()=]*\)"
    r"|(?:m ?)?\\(?:angle|triangle|overline|widehat|overrightarrow) ?\{?[A-Z]{1,4}\}?"
    r"|\((?:x,y(?:,z)?|a,b(?:,c(?:,d)?)?|m,n|p,q|r,\\theta)\)"
    r"|[A-Z]{2,3}|\|[A-Z]{2}\||\[[A-Z]{3,6}\]"
    r"|(?:\\text\{|[A-Za-z]{4})[a-zA-Z {}_\\]*"
)
_NAMED = re.compile(rf"(?P<name>{_NAME.pattern})(?:=|\\in(?![a-zA-Z]) ?)(?=[^=])")
# Before an equals sign: the answer is not, or not quite, what follows.
_DENIAL = re.compile(
    r"(?i)\b(?:not|never|no(?!\.)|isn|wrong|false|approximately|about|almost|nearly)\b"
)
_SET_OF_NUMBERS = re.compile(r"[<>]|\\(?:le|ge|cup|cap|infty|mathbb|setminus)(?![a-zA-Z])")
_MATRIX = re.compile(
    r"[(\[]?\\begin\{([pbB]?matrix|array)\}(?:\{[lcr|]+\})?(.*)\\end\{\1\}[)\]]?", re.S
)


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
    (kind, parts), (other, others) = _structure(gold), _structure(answer)
    if {kind, other} == {"list", "set"}:
        kind = other = "list"
    if kind != other:
        return _unlike_equal(gold, answer, decide)
    if kind == "scalar":
        return _scalars_equal(gold, answer, decide)
    if max(len(parts), len(others)) > MOST_PARTS:
        return False
    if (
        kind in ("list", "set")
        and len(set(map(_name, parts)) - {""}) > 1
        and all(map(_name, parts))
    ):
        return _named_equal(parts, others, decide)
    if kind == "list":
        return _paired(parts, others, decide)
    if kind in ("set", "union"):
        found = [_any(equal(g, a, decide) for a in others) for g in parts]
        wanted = [_any(equal(g, a, decide) for g in parts) for a in others]
        same = _all(found + wanted)
        return decide(gold, answer) if kind == "union" and same is False else same
    if len(parts) != len(others):
        return False
    return _all(equal(g, a, decide) for g, a in zip(parts, others, strict=True))


def _denied(text: str) -> bool:
    before, equals, _ = text.partition("=")
    return bool(equals) and _DENIAL.search(before) is not None


def _paired(parts: list[str], others: list[str], decide: Decide) -> bool | None:
    """Whether two lists have the same members in any order, each as often."""
    if len(parts) != len(others):
        return False
    left, still_open = list(others), False
    for part in parts:
        verdicts = [equal(part, other, decide) for other in left]
        if True in verdicts:
            left.pop(verdicts.index(True))
        elif None in verdicts:
            still_open = True
        else:
            return False
    return None if still_open else True


def exact(gold: str, answer: str) -> bool | None:
    """Whether two scalars are equal, where exact numbers or words settle it; else None."""
    if gold == answer:
        return True
    if '"' in (gold[:1], answer[:1]):
        return _words(gold) == _words(answer)
    if _has_base(gold) or _has_base(answer):
        return False
    sides = _decimal(gold), _decimal(answer)
    if None not in sides:
        return sides[0] == sides[1]
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
_BASED = re.compile(r"\d[0-9A-Z]*_(?:\d|\{\d+\})")


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


def _words(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()


def _has_base(text: str) -> bool:
    return _BASED.fullmatch(text) is not None


def _scalars_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    if "=" not in gold + answer:
        return decide(gold, answer)
    arguments = {_name(side).partition("(")[2] for side in (gold, answer)} - {""}
    if len(arguments) > 1:  # f(x)=x is not f(y)=x
        return False
    value = _unnamed(gold)
    if "=" in value:
        return decide(gold, answer)
    ends_in_it = _chain_equal(value, answer.split("="), decide)
    if "=" in gold and "=" in answer:  # as equations they may be the same: y=2x, y-2x=0
        return _any([ends_in_it, ends_in_it is not True and decide(gold, answer)])
    return ends_in_it


def _chain_equal(value: str, sides: list[str], decide: Decide) -> bool | None:
    """Whether a chain of equations ends in the value: each side before is it, or a name of it.

    An expression in several unknowns is a name, a+b=5; one in a single unknown is an equation that
    is still to be solved, 2x=4.
    """
    if len(sides) > MOST_PARTS:
        return False
    while len(sides) > 1 and (_NAME.fullmatch(sides[0]) or _unknowns(sides[0]) > 1):
        sides = sides[1:]
    return _all(equal(value, side, decide) for side in reversed(sides))


def _unknowns(text: str) -> int:
    """How many letters a formula is in."""
    return len(set(re.findall(r"[a-zA-Z]", re.sub(r"\\[a-zA-Z]+", "", text))))


def _unlike_equal(gold: str, answer: str, decide: Decide) -> bool | None:
    """Two answers of unlike structure: equal only behind a name, or as sets of numbers."""
    plain_gold, plain_answer = _unnamed(gold), _unnamed(answer)
    if (plain_gold, plain_answer) != (gold, answer):
        return equal(plain_gold, plain_answer, decide)
    return decide(gold, answer) if _SET_OF_NUMBERS.search(gold + answer) else False


def _named_equal(parts: list[str], others: list[str], decide: Decide) -> bool | None:
    """A gold whose members have names of their own, x=2,y=3: the same by name or, without, order.

    Each member of the gold is an equation, so that the answer's must be one or a bare value.
    """
    if len(parts) != len(others):
        return False
    if all(map(_name, others)):
        parts, others = sorted(parts, key=_name), sorted(others, key=_name)
        if list(map(_name, parts)) != list(map(_name, others)):
            return False
    elif any(map(_name, others)):
        return False
    return _all(equal(g, a, decide) for g, a in zip(parts, others, strict=True))


def _name(text: str) -> str:
    """The name of the unknown that a text gives the value of; empty if none."""
    found = _NAMED.match(text)
    return found["name"] if found else ""


def _unnamed(text: str) -> str:
    """A text without the name of its unknown."""
    found = _NAMED.match(text)
    return text[found.end() :] if found else text


def _structure(text: str) -> tuple[str, list[str]]:
    """The kind of an answer and its parts; a scalar is its own only part."""
    if text.startswith('"'):
        return "scalar", [text]
    listed, union = _split(text, ","), _split(text, r"\cup")
    if len(listed) == len(union) == 1 and text.startswith(r"\{") and text.endswith(r"\}"):
        members = [sign for part in _split(text[2:-2], ",") for sign in _signs(part)]
        return ("set", members) if len(members) > 1 else ("scalar", [text])
    parts = [sign for part in listed for sign in _signs(part)]
    if len(parts) > 1:
        return "list", parts
    if len(union) > 1:
        return "union", union
    if text[:1] in ("(", "[") and text[-1:] in (")", "]") and not _NAMED.match(text):
        inner = _split(text[1:-1], ",")
        if len(inner) > 1:
            return text[0] + text[-1], inner
    if matrix := _MATRIX.fullmatch(text):
        rows = [row.split("&") for row in re.split(r"\\\\", matrix[2]) if row.strip()]
        shape = "x".join(str(len(row)) for row in rows)
        return f"matrix {shape}", [cell.strip() for row in rows for cell in row]
    if len(ratio := _split(text, ":")) > 1:
        return "ratio", ratio
    return "scalar", [text]


def _signs(text: str) -> list[str]:
    r"""A text with `\pm` stands for two."""
    if not re.search(r"\\(?:pm|mp)(?![a-zA-Z])", text):
        return [text]
    upper = re.sub(r"\\pm(?![a-zA-Z]) ?", "+", re.sub(r"\\mp(?![a-zA-Z]) ?", "-", text))
    lower = re.sub(r"\\pm(?![a-zA-Z]) ?", "-", re.sub(r"\\mp(?![a-zA-Z]) ?", "+", text))
    return [upper, lower]


def _split(text: str, separator: str) -> list[str]:
    """The non-empty parts of a text between separators that stand outside all brackets."""
    parts, depth, start = [], 0, 0
    for token in re.finditer(rf"{re.escape(separator)}|[(\[{{]|[)\]}}]", text):
        if token[0] == separator:
            if depth == 0:
                parts.append(text[start : token.start()].strip())
                start = token.end()
        else:
            depth += 1 if token[0] in "([{" else -1
    return [part for part in [*parts, text[start:].strip()] if part]


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
