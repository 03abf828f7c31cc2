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
_POINTS = 6  # fractions at which two formulas must agree
_WHOLE_POINTS = 7  # whole numbers from 1 at which they must agree, where (-1)^n is real
_FAR_WHOLE = (10, 16, 27, 64, 100, 999)  # and these, where a floor or ceiling makes steps
_COUNTERS = frozenset("ijklmnpqrstKMN")  # letters that stand for whole numbers in a floor
_DECIMAL = re.compile(r"(\d*)\.(\d+)|(\d+)\.(?!\d)")
# What the parser would drop without a word: primes, dots for more digits, text, "about", signs
# that it does not know, an index of a number. Numbers side by side, 2 3 or 2{3}, it adds.
_UNREADABLE = re.compile(
    r"'|[^\x00-\x7f]|\d\s*_|(?<![\w^.])\d+\s+\d+(?![\d/])|(?<![\w^{}.])\d+\s*(?:\\?\{|\[)"
    r"|\\(?:prime|ldots|text|approx|boxed|equiv|phantom|vspace)(?![a-zA-Z])"
)
_NORMALIZED = NormalizationConfig(malformed_operators=True, nits=True, boxed="none")
# R and r are two symbols.
_CASED = ConversionConfig(lowercase_symbols=False)
_PLAIN_DECIMAL = re.compile(r"[-+]?(\d*\.\d+)")
# The parser reads \sin^2(t) but not \sin^2 t.
_POWER_OF_FUNCTION = re.compile(
    r"(\\(?:sin|cos|tan|cot|sec|csc)\^(?:\w|\{\w+\}))\s*(\d*(?:[a-zA-Z]|\\(?!frac|sqrt)[a-z]+))"
)
# The parser reads 2(3) as a mixed number, 2\frac12\pi as 2 times the rest, 1/2 x as 1/(2x).
_PRODUCT = re.compile(r"(\\[a-z]+[_^]\w|\d|\))\s*\((?=[-+\d.\\(])")
_FACTOR_BEHIND = re.compile(r"\)\s*(?=\d|\\frac)")
_BINOMIAL = re.compile(r"\\binom\{\w+\}\{\w+\}")
_SIMPLE_FRACTION = re.compile(r"(?<![\w.^_])(\d+)/(\d+)(?=\s+[a-zA-Z]|\\(?:pi|sqrt)|i(?![a-zA-Z]))")
_MIXED = re.compile(r"(?<![\d.^_])(\d+)\s*(?:\\frac\{(\d+)\}\{(\d+)\}|(?<=\s)(\d+)/(\d+))")
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
    text = _SIMPLE_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = _BINOMIAL.sub(r"(\g<0>)", _MIXED.sub(r"(\1+\\frac{\2\4}{\3\5})", text))
    text = _FACTOR_BEHIND.sub(r")\\cdot ", _PRODUCT.sub(_as_product, text))
    text = _POWER_OF_FUNCTION.sub(r"\1(\2)", _DECIMAL.sub(_as_fraction, text))
    try:
        found = latex2sympy(text, normalization_config=_NORMALIZED, conversion_config=_CASED)
    except (RecursionError, MemoryError):
        raise
    except Exception:  # the parser raises of many kinds on what it cannot read
        return None
    return found.subs(sympy.Symbol("i"), sympy.I) if isinstance(found, sympy.Basic) else None


def _fraction(value: Fraction) -> str:
    return rf"(\frac{{{value.numerator}}}{{{value.denominator}}})"


def _as_product(found: re.Match[str]) -> str:
    r"""`2(3)` with its sign; `\log_2(3)` as it is."""
    return found[0] if found[1].startswith("\\") else rf"{found[1]}\cdot ("


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
    """Equal at every point where both are real; at every finite one if none is, or they hold i.

    A floor or ceiling of n counts things, so that only whole numbers are asked.
    """
    rng = random.Random(0)
    steps = any(side.has(sympy.floor, sympy.ceiling) for side in (left, right))
    counting = steps and all(str(symbol)[0] in _COUNTERS for symbol in symbols)
    points = []
    for point in range(0 if counting else _POINTS):
        step = 97 if point % 2 else 7  # near and far, where floors differ
        points.append({s: sympy.Rational(rng.randint(-300, 300), step) for s in symbols})
    for point in range(_WHOLE_POINTS):  # the symbols differ, and so does their parity
        numbers = [(point + 3 * index) % _WHOLE_POINTS + 1 for index in range(len(symbols))]
        points.append(dict(zip(symbols, map(sympy.Integer, numbers), strict=True)))
    for point in _FAR_WHOLE if steps else ():
        points.append({s: sympy.Integer(point + 7 * i) for i, s in enumerate(symbols)})
    values = [[sympy.N(side.subs(at), _DIGITS) for side in (left, right)] for at in points]
    finite = [pair for pair in values if all(side.is_finite for side in pair)]
    real = [pair for pair in finite if all(side.is_real for side in pair)]
    asked = finite if left.has(sympy.I) or right.has(sympy.I) else real or finite
    return bool(asked) and all(_both_zero(*pair) or _close(*pair) for pair in asked)


def _both_zero(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Terms that cancel leave 0, or the rounding of it."""
    return bool(max(sympy.Abs(left), sympy.Abs(right)) < sympy.Rational(1, 10 ** (_DIGITS // 2)))


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
