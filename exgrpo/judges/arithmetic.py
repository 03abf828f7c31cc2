r"""The value of an arithmetic expression of numbers alone, exact where it is rational.

Reads integers, decimals, `+ - * / ^ ! %`, brackets, `\frac`, `\sqrt`, `\binom`, `\pi` and products
without a sign, `2(3+4)`. A root that is irrational, and pi, have `DIGITS` digits. Sizes are looked
at before anything is worked out, so that the time of an expression is bounded whatever it says:
towers of powers, huge factorials and deep nesting are not read at all. No clock is needed, and
threads do not matter.
"""

import math
import re
from dataclasses import dataclass, replace
from decimal import Context, Decimal, DecimalException
from fractions import Fraction

Number = Fraction | Decimal  # exact, or to DIGITS digits

DIGITS = 60
LONGEST = 400  # characters of an expression
_DEEPEST = 30  # brackets within brackets
_MOST_BITS = 4096  # of numerator and denominator
_LARGEST_FACTORIAL, _LARGEST_CHOICE = 100, 1000
_PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899")

NUMBER = r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+"
COMMANDS = (r"\frac", r"\sqrt", r"\binom", r"\pi")
_TOKEN = re.compile(rf"\s*(?:({NUMBER})|(\\[a-zA-Z]+)|([-+*/^!%…(){{}}\[\]])|\Z)")
_MIXED_PART = re.compile(r"\\frac \{ (\d+) \} \{ (\d+) \}")
_CLOSING = {"(": ")", "{": "}", "[": "]"}


class UnreadableError(ValueError):
    """No expression of numbers alone, or one that is too large to be worked out."""


@dataclass(frozen=True)
class Quantity:
    """What an expression is worth.

    literal: a number as it stands, with its sign at most, and no operation. places: its digits
    after the point. decimal: a decimal point occurs anywhere. percent, cut: a literal that ends in
    a percent sign (`value` has it divided by 100), or in three dots.
    """

    value: Number
    literal: bool = False
    places: int = 0
    decimal: bool = False
    percent: bool = False
    cut: bool = False

    @property
    def exact(self) -> bool:
        return isinstance(self.value, Fraction)


def evaluate(text: str, mixed: bool = True) -> Quantity:
    r"""The value of an expression. Raises UnreadableError.

    mixed: `2\frac{1}{3}` is a mixed number, 7/3; else a product, 2/3. `2 1/3` is always one.
    """
    if len(text) > LONGEST:
        raise UnreadableError("too long")
    reader = _Reader(_tokens(text), mixed)
    try:
        found = reader.sum(0)
    except (DecimalException, ArithmeticError) as error:
        raise UnreadableError(str(error)) from error
    if reader.place != len(reader.tokens):
        raise UnreadableError(f"unexpected {reader.next}")
    return found


def as_decimal(number: Number) -> Decimal:
    if isinstance(number, Decimal):
        return number
    return Context(prec=DIGITS).divide(Decimal(number.numerator), Decimal(number.denominator))


def _tokens(text: str) -> list[str]:
    tokens, place = [], 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise UnreadableError(f"unexpected {text[place]!r}")
        if found.lastindex:
            tokens.append(found[found.lastindex])
        place = found.end()
    return tokens


class _Reader:
    """Recursive descent over the tokens; each method reads one level of the grammar."""

    def __init__(self, tokens: list[str], mixed: bool) -> None:
        self.tokens, self.mixed, self.place = tokens, mixed, 0

    @property
    def next(self) -> str:
        return self.tokens[self.place] if self.place < len(self.tokens) else ""

    def take(self) -> str:
        token = self.next
        self.place += 1
        return token

    def sum(self, depth: int) -> Quantity:
        if depth > _DEEPEST:
            raise UnreadableError("nested too deep")
        left = self.product(depth)
        while self.next in ("+", "-"):
            sign = self.take()
            right = self.product(depth)
            value = right.value if sign == "+" else _negative(right.value)
            left = _joined(_add(left.value, value), left, right)
        return left

    def product(self, depth: int) -> Quantity:
        left = self.signed(depth)
        while self.next in ("*", "/", *_CLOSING, *COMMANDS):
            sign = self.take() if self.next in ("*", "/") else ""
            right = self.signed(depth)
            if sign == "/":
                value = _divide(left.value, right.value)
                if self.next in (*_CLOSING, *COMMANDS):
                    raise UnreadableError("1/2(3): opinions differ on what is divided")
            else:
                value = _multiply(left.value, right.value)
            left = _joined(value, left, right)
        return left

    def signed(self, depth: int) -> Quantity:
        negative, signs = False, 0
        while self.next in ("+", "-"):
            negative ^= self.take() == "-"
            signs += 1
        if signs > 2:
            raise UnreadableError("three signs in a row")
        found = self.power(depth)
        return replace(found, value=_negative(found.value)) if negative else found

    def power(self, depth: int) -> Quantity:
        base = self.postfixed(depth)
        if self.next != "^":
            return base
        self.take()
        if depth > _DEEPEST:
            raise UnreadableError("nested too deep")
        negative = self.next == "-"
        if negative:
            self.take()
        exponent = self.power(depth + 1)
        value = _negative(exponent.value) if negative else exponent.value
        return _joined(_power(base.value, value), base, exponent)

    def postfixed(self, depth: int) -> Quantity:
        found = self.atom(depth)
        while self.next in ("%", "!", "…"):
            sign = self.take()
            if sign == "%":
                value = _divide(found.value, Fraction(100))
                found = replace(found, value=value, percent=found.literal)
            elif sign == "!":
                found = _joined(_factorial(found.value), found)
            elif found.literal and found.places:
                found = replace(found, cut=True)
            else:
                raise UnreadableError("an expression with a gap")
        return found

    def atom(self, depth: int) -> Quantity:
        token = self.take()
        if token[:1].isdigit() or token[:1] == ".":
            return self.number(token)
        if token in _CLOSING:
            found = self.sum(depth + 1)
            if self.take() != _CLOSING[token]:
                raise UnreadableError("a bracket is not closed")
            return found
        if token == r"\pi":
            return Quantity(_PI)
        if token == r"\sqrt":
            degree = self.atom(depth).value if self.next == "[" else Fraction(2)
            return _joined(_root(self.argument(depth).value, degree))
        if token in (r"\frac", r"\binom"):
            first, second = self.argument(depth), self.argument(depth)
            join = _divide if token == r"\frac" else _choose
            return _joined(join(first.value, second.value), first, second)
        raise UnreadableError(f"unexpected {token!r}")

    def argument(self, depth: int) -> Quantity:
        r"""What a command takes: a group, or one digit as in `\frac12`."""
        if self.next[:1].isdigit() and len(self.next) > 1:
            digits = self.next
            if not digits.isdigit():
                raise UnreadableError("a number without braces")
            self.tokens[self.place : self.place + 1] = [digits[0], digits[1:]]
        return self.atom(depth)

    def number(self, token: str) -> Quantity:
        plain = token.replace(",", "")
        places = len(plain.partition(".")[2])
        found = Quantity(Fraction(plain), True, places, places > 0)
        rest = self.tokens[self.place : self.place + 3]
        if len(rest) == 3 and rest[0].isdigit() and rest[1] == "/" and rest[2].isdigit():
            if places:
                raise UnreadableError("two numbers in a row")
            self.place += 3
            return _joined(_add(found.value, _divide(Fraction(rest[0]), Fraction(rest[2]))))
        part = _MIXED_PART.match(" ".join(self.tokens[self.place : self.place + 7]))
        if self.mixed and not places and part:
            self.place += 7
            return _joined(_add(found.value, _divide(Fraction(part[1]), Fraction(part[2]))))
        return found


def _joined(value: Number, *parts: Quantity) -> Quantity:
    """The result of an operation on the parts."""
    if isinstance(value, Fraction):
        _check_size(max(value.numerator.bit_length(), value.denominator.bit_length()))
    return Quantity(value, decimal=any(part.decimal for part in parts))


def _check_size(bits: float) -> None:
    if bits > _MOST_BITS:
        raise UnreadableError("too large")


def _negative(value: Number) -> Number:
    return -value if isinstance(value, Fraction) else value.copy_negate()


def _add(left: Number, right: Number) -> Number:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left + right
    return Context(prec=DIGITS).add(as_decimal(left), as_decimal(right))


def _multiply(left: Number, right: Number) -> Number:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left * right
    return Context(prec=DIGITS).multiply(as_decimal(left), as_decimal(right))


def _divide(left: Number, right: Number) -> Number:
    if isinstance(left, Fraction) and isinstance(right, Fraction):
        return left / right
    return Context(prec=DIGITS).divide(as_decimal(left), as_decimal(right))


def _power(base: Number, exponent: Number) -> Number:
    if isinstance(exponent, Fraction) and exponent.denominator > 1:
        return _root(_power(base, Fraction(exponent.numerator)), Fraction(exponent.denominator))
    if not isinstance(exponent, Fraction):
        raise UnreadableError("an irrational exponent")
    times = exponent.numerator
    if isinstance(base, Fraction):
        _check_size(abs(times) * max(map(int.bit_length, (base.numerator, base.denominator))))
        return base**times
    _check_size(abs(times))
    return Context(prec=DIGITS).power(base, times)


def _root(value: Number, degree: Number) -> Number:
    """The real root; exact where it is rational."""
    if not isinstance(degree, Fraction) or degree.denominator > 1 or not 2 <= degree <= 64:
        raise UnreadableError("a root of another degree")
    if value < 0:
        raise UnreadableError("a root of a negative number")
    if isinstance(value, Fraction):
        upper, lower = (_whole_root(part, int(degree)) for part in value.as_integer_ratio())
        if upper is not None and lower is not None:
            return Fraction(upper, lower)
    context = Context(prec=DIGITS)
    if degree == 2:
        return context.sqrt(as_decimal(value))
    return context.power(as_decimal(value), context.divide(Decimal(1), Decimal(int(degree))))


def _whole_root(value: int, degree: int) -> int | None:
    if degree == 2:
        root = math.isqrt(value)
    else:
        low, high = 0, 1 << (value.bit_length() // degree + 1)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**degree <= value else (low, middle - 1)
        root = low
    return root if root**degree == value else None


def _factorial(value: Number) -> Number:
    return Fraction(math.factorial(_count(value, _LARGEST_FACTORIAL)))


def _choose(total: Number, chosen: Number) -> Number:
    counts = (_count(each, _LARGEST_CHOICE) for each in (total, chosen))
    return Fraction(math.comb(*counts))


def _count(value: Number, most: int) -> int:
    if not isinstance(value, Fraction) or value.denominator > 1 or not 0 <= value <= most:
        raise UnreadableError("too large, or no count")
    return int(value)
