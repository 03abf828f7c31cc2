r"""What exact text cannot settle: both sides are parsed, mathematics decides.

math-verify compares rounded floats (1e-6 apart is equal), so its own comparison is asked only
about sets, intervals and inequalities. Numbers and formulas are compared here: rationals exactly,
the rest to 200 digits, formulas at several points. Slow on purpose-built answers and without any
limit of its own: run it in a worker of `exgrpo.grading.Grader`. Importing it loads sympy (about
half a second).
"""

import logging
import random
import re
from fractions import Fraction

import sympy
from latex2sympy2_extended import NormalizationConfig, latex2sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from math_verify import verify

from exgrpo import equality

_DIGITS = 200  # digits to which two irrational numbers must agree
_SHORTEST_APPROXIMATION = 15  # digits from which a decimal may stand for an irrational number
_POINTS = 6  # points at which two formulas must agree
_DECIMAL = re.compile(r"(\d*)\.(\d+)|(\d+)\.(?!\d)")
# What the parser would drop without a word: primes, dots for more digits, text, "about".
_UNREADABLE = re.compile(r"'|\\(?:prime|ldots|text|approx|boxed)(?![a-zA-Z])")
_NORMALIZED = NormalizationConfig(malformed_operators=True, nits=True, boxed="none")
# R and r are two symbols.
_CASED = ConversionConfig(lowercase_symbols=False)
_PLAIN_DECIMAL = re.compile(r"[-+]?(\d*\.\d+)")
# The parser reads \sin^2(t) but not \sin^2 t.
_POWER_OF_FUNCTION = re.compile(
    r"(\\(?:sin|cos|tan|cot|sec|csc)\^(?:\w|\{\w+\}))\s*(\d*(?:[a-zA-Z]|\\(?!frac|sqrt)[a-z]+))"
)
_GROUPED = re.compile(r"\\\{(.*)\\\}")

# The caller guards the time; math-verify warns on every call that it does not.
logging.getLogger("math_verify").setLevel(logging.CRITICAL)


def compare(gold: str, answer: str) -> tuple[bool, str]:
    """Whether two answers in normal form are equal, and what decided it. Never raises.

    What cannot be decided is wrong.
    """
    try:
        return bool(equality.equal(gold, answer, decide)), "math-verify"
    except MemoryError:
        return False, "memory limit"
    except Exception as error:  # sympy raises of many kinds on answers that make no sense
        return False, f"cannot be compared: {type(error).__name__}"


def decide(gold: str, answer: str) -> bool:
    """Whether two scalars or equations in normal form are equal as mathematics.

    What cannot be read or decided is not equal. May raise MemoryError or RecursionError, or run
    for ever, on an answer made to do so.
    """
    settled = equality.exact(gold, answer)
    if settled is not None:
        return settled
    if "=" in gold + answer:
        return "=" in gold and "=" in answer and _equations_equal(gold, answer)
    left, right = _read(gold), _read(answer)
    if left is None or right is None:
        return False
    if isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr):
        return _expressions_equal(left, right, _shown_digits(gold) or _shown_digits(answer))
    return bool(verify(left, right, timeout_seconds=None, allow_set_relation_comp=True))


def _read(text: str) -> sympy.Basic | None:
    """The sympy object that a text spells, decimals as exact fractions; None if unreadable."""
    value = equality.number(text)
    if value is not None:
        return sympy.Rational(value.numerator, value.denominator)
    if _UNREADABLE.search(text):
        return None
    inner = _GROUPED.fullmatch(text)
    if inner and "," not in text:
        text = inner[1]
    text = equality.REPEATING.sub(lambda found: _fraction(equality.repeating(found)), text)
    text = _POWER_OF_FUNCTION.sub(r"\1(\2)", _DECIMAL.sub(_as_fraction, text))
    try:
        found = latex2sympy(text, normalization_config=_NORMALIZED, conversion_config=_CASED)
    except (RecursionError, MemoryError):
        raise
    except Exception:
        return None
    return found.subs(sympy.Symbol("i"), sympy.I) if isinstance(found, sympy.Basic) else None


def _fraction(value: Fraction) -> str:
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


def _as_fraction(decimal: re.Match[str]) -> str:
    whole, after = decimal[1] or decimal[3] or "0", decimal[2] or ""
    return _fraction(Fraction(int(whole + after), 10 ** len(after)))


def _shown_digits(text: str) -> int:
    """Decimal places of a plain decimal long enough to stand for an irrational number, else 0."""
    found = _PLAIN_DECIMAL.fullmatch(text)
    if not found or len(found[1].replace(".", "").lstrip("0")) < _SHORTEST_APPROXIMATION:
        return 0
    return len(found[1].split(".")[1])


def _expressions_equal(left: sympy.Expr, right: sympy.Expr, shown_digits: int) -> bool:
    left, right = left.doit(), right.doit()
    if left.has(sympy.zoo, sympy.nan) or right.has(sympy.zoo, sympy.nan):
        return False
    if left == right:
        return True
    symbols = sorted(left.free_symbols | right.free_symbols, key=str)
    if symbols:
        return _formulas_equal(left, right, symbols)
    if left.is_Rational and right.is_Rational:
        return False
    if shown_digits and not (left.is_rational and right.is_rational):
        gap = sympy.Abs(sympy.N(left - right, _DIGITS))
        return bool(gap <= sympy.Rational(1, 10**shown_digits))
    return _close(sympy.N(left, _DIGITS), sympy.N(right, _DIGITS))


def _formulas_equal(left: sympy.Expr, right: sympy.Expr, symbols: list[sympy.Symbol]) -> bool:
    """Equal at every point where both are real; at every point where they are real nowhere."""
    rng = random.Random(0)
    values = []
    for point in range(_POINTS):
        step = 97 if point % 2 else 7  # near and far, where floors differ
        at = {symbol: sympy.Rational(rng.randint(-300, 300), step) for symbol in symbols}
        values.append(tuple(sympy.N(side.subs(at), _DIGITS) for side in (left, right)))
    real = [pair for pair in values if all(side.is_real for side in pair)]
    return all(_close(*pair) for pair in real or values)


def _close(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Two numbers agree to `_DIGITS` digits (less ten for rounding) of the greater one."""
    if not (left.is_finite and right.is_finite):
        return False
    size = max(sympy.Abs(left), sympy.Abs(right))
    return bool(sympy.Abs(left - right) <= size * sympy.Rational(1, 10 ** (_DIGITS - 10)))


def _equations_equal(gold: str, answer: str) -> bool:
    """Two equations are the same when their differences of sides are proportional."""
    left, right = _difference(gold), _difference(answer)
    if left is None or right is None:
        return False
    symbols = sorted(left.free_symbols, key=str)
    if not symbols or set(symbols) != right.free_symbols:
        return False
    at = {symbol: sympy.Rational(7 * index + 5, 13) for index, symbol in enumerate(symbols)}
    return _formulas_equal(left * right.subs(at), right * left.subs(at), symbols)


def _difference(equation: str) -> sympy.Expr | None:
    sides = [_read(side) for side in equation.split("=")]
    if len(sides) != 2 or not all(isinstance(side, sympy.Expr) for side in sides):
        return None
    return sympy.Add(sides[0], sympy.Mul(-1, sides[1])).doit()
