"""Points at which two formulas are compared: what agrees at all of them is the same formula.

Fractions on both sides of nought at several scales, and one between any two places where a formula
may change its course: a root of what stands in `|x|`, a maximum, a root or a logarithm.
"""

import itertools
import random
from collections.abc import Iterator
from fractions import Fraction

import sympy
from mpmath.libmp import NoConvergence
from sympy.polys.polyerrors import BasePolynomialError

Point = dict[sympy.Symbol, sympy.Rational]

_SCALES = (997, 89, 13, 3)  # denominators of numerators to a thousand: from below one to far away
_AT_EACH_SCALE = 4  # so that two symbols have each pair of signs
_WHOLE = 7  # whole numbers from 1, where (-1)^n is real
# And these, where a floor or ceiling makes steps, also on both sides of the constants in it.
_FAR_WHOLE = (10, 16, 27, 64, 100, 999)
_MOST_CONSTANTS = 8
_COUNTERS = frozenset("ijklmnpqrstKMN")  # letters that stand for whole numbers in a floor
_MOST_TURNS = 12  # places of change that are looked at, for each symbol
_MOST_DEGREE = 8  # of a polynomial whose roots are such places
_FINEST = 10**6  # denominator of a point between two of them
_TURNING = (sympy.Abs, sympy.sign, sympy.log, sympy.Max, sympy.Min)


def points(sides: list[sympy.Expr], symbols: list[sympy.Symbol]) -> list[Point]:
    """Where to compare formulas in these symbols.

    A floor or ceiling of n counts things, and a sum to n has n terms: only whole numbers are asked.
    """
    steps = any(side.has(sympy.floor, sympy.ceiling) for side in sides)
    counting = any(side.has(sympy.Sum, sympy.Product) for side in sides) or (
        steps and all(str(symbol)[0] in _COUNTERS for symbol in symbols)
    )
    found = [] if counting else [*_spread(symbols), *_between_turns(sides, symbols)]
    for point in range(_WHOLE):  # the symbols differ, and so does their parity
        numbers = [(point + 3 * index) % _WHOLE + 1 for index in range(len(symbols))]
        found.append(dict(zip(symbols, map(sympy.Integer, numbers), strict=True)))
    for point in (*_FAR_WHOLE, *_constants(sides)) if steps else ():
        found.append({s: sympy.Integer(point + 7 * i) for i, s in enumerate(symbols)})
    return found


def _constants(sides: list[sympy.Expr]) -> list[int]:
    """Whole numbers before, at and twice as far as the constants in floors and ceilings."""
    stepped = set().union(*(side.atoms(sympy.floor, sympy.ceiling) for side in sides))
    numbers = {number for each in stepped for number in each.atoms(sympy.Rational)}
    sizes = sorted({abs(each) for number in numbers for each in (number.p, number.q)} - {0, 1})
    return [near for size in sizes[-_MOST_CONSTANTS:] for near in (size - 1, size, 2 * size)]


def value(side: sympy.Expr, at: Point, digits: int) -> sympy.Expr:
    """What a formula is at a point; not a finite number where it is none there."""
    if all(number.is_Integer for number in at.values()):  # 0/0 is seen only in exact numbers
        return sympy.N(side.subs(at), digits)
    # Powers of exact fractions would take a hundred times as long.
    return side.evalf(digits, subs=at)


def is_real(sides: list[sympy.Expr], at: Point) -> bool:
    """Whether every root and logarithm in some formulas is of what is not negative."""
    powers = {
        power for side in sides for power in side.atoms(sympy.Pow) if not power.exp.is_integer
    }
    logarithms = {each.args[0] for side in sides for each in side.atoms(sympy.log)}
    return all(
        power.exp.subs(at).is_integer or _positive(power.base, at) for power in powers
    ) and all(_positive(argument, at) for argument in logarithms)


def _positive(value: sympy.Expr, point: Point) -> bool:
    return bool((number := sympy.N(value.subs(point))).is_real and number >= 0)


def _spread(symbols: list[sympy.Symbol]) -> Iterator[Point]:
    """Fractions, never whole: a tower of powers is only a number of bounded digits then."""
    rng = random.Random(0)
    for scale, turn in itertools.product(_SCALES, range(_AT_EACH_SCALE)):
        signs = [1 - 2 * (turn >> index % 2 & 1) for index in range(len(symbols))]
        sizes = [rng.randint(100, 995) for _ in symbols]
        yield {
            symbol: sign * sympy.Rational(size + (size % scale == 0), scale)
            for symbol, sign, size in zip(symbols, signs, sizes, strict=True)
        }


def _between_turns(sides: list[sympy.Expr], symbols: list[sympy.Symbol]) -> Iterator[Point]:
    """Points before, between and behind the places where a side may change its course."""
    turning = set().union(*map(_turning, sides))
    usual = next(_spread(symbols))
    for symbol in symbols if turning else ():
        others = {each: value for each, value in usual.items() if each != symbol}
        turns = sorted(set().union(*(_roots(each.subs(others), symbol) for each in turning)))
        turns = turns[:_MOST_TURNS]
        if not turns:
            continue
        ends = turns[0] - (1 + abs(turns[0])) * 2 / 7, turns[-1] + (1 + abs(turns[-1])) * 2 / 7
        inner = [low + (high - low) * 3 / 7 for low, high in itertools.pairwise(turns)]
        for value in (ends[0], *inner, ends[1]):
            # of few digits: sympy takes powers of exact numbers apart into primes
            short = Fraction(value).limit_denominator(_FINEST)
            yield {symbol: sympy.Rational(short.numerator, short.denominator), **others}


def _turning(side: sympy.Expr) -> set[sympy.Expr]:
    """What changes a formula's course where it is nought."""
    found: set[sympy.Expr] = set()
    for each in side.atoms(*_TURNING):
        found.update(each.args)
        found.update(one - other for one, other in itertools.combinations(each.args, 2))
    found.update(each.base for each in side.atoms(sympy.Pow) if not each.exp.is_integer)
    return found


def _roots(side: sympy.Expr, symbol: sympy.Symbol) -> set[float]:
    """The real roots of a polynomial, to six places; none of another formula or a high degree."""
    try:
        polynomial = sympy.Poly(sympy.N(side), symbol)
        found = polynomial.nroots() if 0 < polynomial.degree() <= _MOST_DEGREE else []
    except (BasePolynomialError, NoConvergence):
        return set()
    return {round(float(root), 6) for root in found if root.is_real}  # one root, found twice
