r"""What exact text cannot settle: both sides are parsed, mathematics decides.

math-verify compares rounded floats (1e-6 apart is equal), so its own comparison is asked only
about sets and intervals. Numbers and formulas are compared here: rationals exactly, the rest to 200
digits, formulas at the points of `exgrpo.probes`. Slow on purpose-built answers and without any
limit of its own: run it in a worker of `exgrpo.grading.Grader`. Importing it loads sympy (about
half a second).
"""

import logging
import re
from fractions import Fraction
from functools import lru_cache

import sympy
from latex2sympy2_extended import NormalizationConfig, latex2sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from math_verify import verify

from exgrpo import equality, probes, reasons
from exgrpo.structure import SET_BEHIND, sides

_DIGITS = 200  # digits to which two irrational numbers must agree
_FEW = 3  # points below which too little is said
_NOUGHT = sympy.Float(f"1e-{_DIGITS // 2}", _DIGITS)  # what terms that cancel may leave
_SHORTEST_APPROXIMATION = 15  # digits from which a decimal may stand for an irrational number
_DECIMAL = re.compile(r"(\d*)\.(\d+)|(\d+)\.(?!\d)")
# What the parser would drop without a word: primes, dots for more digits, text, "about", signs
# that it does not know, an index of a number. Numbers side by side, 2 3 or 2{3}, it adds.
_UNREADABLE = re.compile(
    r"'|[^\x00-\x7f]|\d\s*_|(?<![\w^.])\d+\s+\d+(?![\d/])|(?<![\w^{}.])\d+\s*(?:\\?\{|\[)"
    r"|\\(?:prime|ldots|text|approx|boxed|equiv|phantom|vspace|pm|mp|Xi)(?![a-zA-Z])"
    rf"|\\in(?![a-zA-Z])(?! ?{SET_BEHIND})",
    re.S,
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
_GROUPED = re.compile(r"\\\{((?:(?!\\emptyset|\\\{|,).)*)\\\}")
_IMAGINARY = re.compile(r"\\text\{i\}")
# An odd root of what is negative is real, (-8)^{1/3} is not; the parser takes them for one, so that
# a symbol tells the index. Nor does it know names of several letters, but under an arrow.
_ODD_ROOT = re.compile(r"\\sqrt ?\[(\d{0,5}[13579])\]")
_ODD = "Xi_"  # \Xi of an answer is not read
_POINTS_OF_FIGURE = re.compile(r"\\(?:angle|triangle) ?\{?([A-Z]{2,})\}?")

# The caller guards the time; math-verify warns on every call that it does not.
logging.getLogger("math_verify").setLevel(logging.CRITICAL)


def compare(gold: str, answer: str) -> tuple[bool, str]:
    """Whether two answers in normal form are equal, and what decided it. Never raises.

    What cannot be decided is wrong.
    """
    seen: set[str] = set()

    def noted(one: str, other: str) -> bool:
        verdict, reason = _decided(one, other)
        seen.add(reason)
        return verdict

    try:
        right = bool(equality.equal(gold, answer, noted))
    except MemoryError:
        return False, reasons.MEMORY
    except Exception as error:  # sympy raises of many kinds on answers that make no sense
        return False, f"{reasons.NOT_COMPARED}: {type(error).__name__}"
    if not right and reasons.UNREADABLE in seen:
        return False, reasons.UNREADABLE
    return right, reasons.MATH_VERIFY if reasons.MATH_VERIFY in seen else reasons.ALGEBRA


def _decided(gold: str, answer: str) -> tuple[bool, str]:
    """Whether two scalars or equations in normal form are equal, and what decided it.

    What cannot be read or decided is not equal. May raise MemoryError or RecursionError, or run
    for ever, on an answer made to do so.
    """
    settled = equality.exact(gold, answer)
    if settled is not None:
        return settled, reasons.ALGEBRA
    equations = sides(gold), sides(answer)
    if max(map(len, equations)) > 1:
        if min(map(len, equations)) == 1:
            return False, reasons.ALGEBRA
        return _equations_equal(*equations)
    left, right = _read(gold), _read(answer)
    if left is None or right is None:
        return False, reasons.UNREADABLE
    if isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr):
        shown = _shown_digits(gold) or _shown_digits(answer)
        return _expressions_equal(left, right, shown), reasons.ALGEBRA
    if _is_inequality(left) and _is_inequality(right):
        return _inequalities_equal(left, right), reasons.ALGEBRA
    same = verify(left, right, timeout_seconds=None, allow_set_relation_comp=True)
    return bool(same), reasons.MATH_VERIFY


@lru_cache(maxsize=256)  # a gold is compared with many
def _read(text: str) -> sympy.Basic | None:
    """The sympy object that a text spells, decimals as exact fractions; None if unreadable."""
    value = equality.number(text)
    if value is not None:
        return sympy.Rational(value.numerator, value.denominator)
    text = _IMAGINARY.sub("i", text)
    if _UNREADABLE.search(text):
        return None
    if inner := _GROUPED.fullmatch(text):
        text = inner[1]
    text = _POINTS_OF_FIGURE.sub(r"\\overrightarrow{\1}", text)
    text = _ODD_ROOT.sub(rf"\\sqrt[\\{_ODD}{{\1}}]", text)
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
    if not isinstance(found, sympy.Basic):
        return None
    found = found.subs(sympy.Symbol("i"), sympy.I)
    return found.replace(_is_odd_root, _real_power)


def _is_odd_root(found: sympy.Basic) -> bool:
    return isinstance(found, sympy.Pow) and bool(_index(found))


def _index(power: sympy.Pow) -> dict[sympy.Symbol, int]:
    """The symbols that stand for odd indices in an exponent."""
    marked = (each for each in power.exp.free_symbols if str(each).startswith(_ODD))
    return {each: int(re.sub(r"\D", "", str(each))) for each in marked}  # Xi_3, Xi_{11}


def _real_power(power: sympy.Pow) -> sympy.Expr:
    """A power to a fraction with an odd denominator, real where its base is."""
    value = power.exp.subs(_index(power))
    if not value.is_Rational or power.base.has(sympy.I):
        return power.base**value
    return sympy.sign(power.base) ** value.p * sympy.Abs(power.base) ** value


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
        exact, shown = (right, left) if left.is_rational else (left, right)
        beyond = sympy.N((exact - shown) * sympy.sign(shown) * 10**shown_digits, _DIGITS)
        return bool(-0.5 <= beyond < 1)  # rounded or cut off
    return _close(sympy.N(left, _DIGITS), sympy.N(right, _DIGITS))


def _formulas_equal(left: sympy.Expr, right: sympy.Expr, symbols: list[sympy.Symbol]) -> bool:
    """Equal at every point where both are real; at every finite one if few are, or they hold i."""
    both = [left, right]
    at = probes.points(both, symbols)
    values = [[probes.value(side, point, _DIGITS) for side in both] for point in at]
    finite = [index for index, pair in enumerate(values) if all(side.is_finite for side in pair)]
    if not (left.has(sympy.I) or right.has(sympy.I)):
        real = [index for index in finite if all(side.is_real for side in values[index])]
        real = [index for index in real if probes.is_real(both, at[index])]
        finite = real if len(real) >= _FEW else finite
    return len(finite) >= _FEW and all(
        _both_zero(*values[index]) or _close(*values[index]) for index in finite
    )


def _both_zero(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Terms that cancel leave 0, or the rounding of it."""
    return bool(max(sympy.Abs(left), sympy.Abs(right)) < _NOUGHT)


def _close(left: sympy.Expr, right: sympy.Expr) -> bool:
    """Two numbers agree to `_DIGITS` digits (less ten for rounding) of the greater one."""
    if not (left.is_finite and right.is_finite):
        return False
    size = max(sympy.Abs(left), sympy.Abs(right))
    return bool(sympy.Abs(left - right) <= size * sympy.Rational(1, 10 ** (_DIGITS - 10)))


def _equations_equal(gold: list[str], answer: list[str]) -> tuple[bool, str]:
    """Whether two equations are the same, and what decided it."""
    read = [[_read(side) for side in equation] for equation in (gold, answer)]
    if not all(isinstance(side, sympy.Expr) for equation in read for side in equation):
        return False, reasons.UNREADABLE
    if len(gold) != 2 or len(answer) != 2:
        return False, reasons.ALGEBRA
    left, right = (sympy.Add(one, sympy.Mul(-1, other)).doit() for one, other in read)
    return _proportional(left, right) is not None, reasons.ALGEBRA


def _is_inequality(found: sympy.Basic) -> bool:
    return isinstance(found, (sympy.Lt, sympy.Gt, sympy.Le, sympy.Ge))


def _inequalities_equal(gold: sympy.Rel, answer: sympy.Rel) -> bool:
    """Whether two inequalities are the same up to a positive factor: 3x<1, x<1/3."""
    strict = [isinstance(each, (sympy.Lt, sympy.Gt)) for each in (gold, answer)]
    factor = _proportional(gold.gts - gold.lts, answer.gts - answer.lts)
    return strict[0] == strict[1] and factor is not None and bool(factor > 0)


def _proportional(left: sympy.Expr, right: sympy.Expr) -> sympy.Expr | None:
    """The number by which one formula is a multiple of another; None if it is none.

    Two equations are the same where the differences of their sides are proportional.
    """
    symbols = sorted(left.free_symbols, key=str)
    if not symbols or set(symbols) != right.free_symbols:
        return None
    for point in probes.points([left, right], symbols):
        values = [probes.value(side, point, _DIGITS) for side in (left, right)]
        # at a zero of one of them every multiple would do
        if all(value.is_real and abs(value) > _NOUGHT for value in values):
            same = _formulas_equal(left * right.subs(point), right * left.subs(point), symbols)
            return values[0] / values[1] if same else None
    return None
