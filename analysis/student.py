"""Student's t for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt


def two_sided_p(t: float, df: int) -> float:
    """Probability that Student's t with df >= 1 degrees of freedom lies beyond -|t| or |t|."""
    angle = atan(abs(t) / sqrt(df))
    odd = df % 2
    term = cos(angle) if odd else 1.0
    total = 0.0
    for power in range(2 + odd, df + 1, 2):
        total += term
        term *= cos(angle) ** 2 * (power - 1) / power
    inside = 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
    return max(0.0, 1 - inside)


@lru_cache(maxsize=4096)
def critical_value(rate: float, df: int) -> float:
    """The t that |T| exceeds with probability `rate`, 0 < rate <= 1, to nine digits."""
    low, high = 0.0, 1.0
    while two_sided_p(high, df) > rate:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if two_sided_p(middle, df) > rate else (low, middle)
    return high
