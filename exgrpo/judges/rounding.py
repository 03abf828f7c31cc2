"""Whether two quantities agree as they are written: exactly, or rounded to the digits shown.

A decimal is right if the exact value, rounded to its digits (up or down at the half), is the
decimal; behind an approximate sign, or with three dots, also cut off. A whole number must be exact,
unless the other side has decimals, or the sign is an approximate one (then also rounded to its
trailing zeros). `12.5%` may stand for 0.125 and for 12.5.
"""

from decimal import Decimal
from fractions import Fraction

from exgrpo.judges.arithmetic import Number, Quantity, as_decimal

_CLOSE = Decimal("1e-40")  # relative, of two irrational values
_FLOAT_DIGITS = 15  # a decimal of that many digits may be a machine's


def agree(left: Quantity, right: Quantity, approximate: bool) -> bool | None:
    """Whether left = right holds, or left ≈ right; None where that cannot be told.

    It cannot where both sides are expressions and one is rounded: an approximate sign, or decimals
    beside roots and pi.
    """
    if _same(left.value, right.value):
        return True
    if right.literal:
        return _rounds_to(left, right, approximate)
    if left.literal and left.places:
        return _rounds_to(right, left, approximate)
    if approximate or ((left.decimal or right.decimal) and not (left.exact and right.exact)):
        return None
    return False


def _same(left: Number, right: Number) -> bool:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left == right
    left, right = as_decimal(left), as_decimal(right)
    return abs(left - right) <= _CLOSE * max(abs(left), abs(right), Decimal(1))


def _rounds_to(exact: Quantity, written: Quantity, approximate: bool) -> bool:
    """Whether a number as written is the value, rounded to the digits that it shows."""
    values = [written.value, written.value * 100] if written.percent else [written.value]
    scale = Fraction(1, 100) if written.percent else Fraction(1)
    loose = written.cut or (approximate and written.places > 0)
    return any(
        _near(exact, value, _unit(exact, written, approximate) * size, loose)
        for value, size in zip(values, (scale, Fraction(1)), strict=False)
    )


def _unit(exact: Quantity, written: Quantity, approximate: bool) -> Fraction:
    """The worth of the last digit that counts; 0 for a whole number that must be exact."""
    digits = str(abs(int(written.value * 10**written.places)))
    if written.places:
        last = Fraction(1, 10**written.places)
        return last * 100 if len(digits) >= _FLOAT_DIGITS else last
    if not approximate:
        return Fraction(int(exact.decimal))
    return Fraction(10 ** (len(digits) - len(digits.rstrip("0"))))


def _near(exact: Quantity, value: Number, unit: Fraction, loose: bool) -> bool:
    gap = abs(as_decimal(exact.value) - as_decimal(value))
    return gap <= as_decimal(unit) * (1 if loose else Decimal("0.5"))
