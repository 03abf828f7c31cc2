"""How far a mean over few seeds and many questions may be from the truth.

The answers of S seeds to the same questions are crossed: what a seed brings, what a question
brings, and the noise of each answer. The variance of their mean is that of the seeds' estimates
over S, which holds the noise of their answers already, and what all seeds share through their
questions: V = V_seed + V_question - V_noise (Cameron, Gelbach and Miller 2011, J. Bus. Econ. Stat.
29; Owen and Eckles 2012, Ann. Appl. Stat. 6).

V_seed is known with S - 1 degrees of freedom, the shared part well. So the error is distributed as
the root of the one times Student's t plus the root of the other times a normal (Behrens and
Fisher). By integration its 95 % intervals cover 95.0 to 97.7 % with 3 seeds, to 96.9 with 4, to
96.5 with 5 (to 98.9 with 2): most where questions share about three times the noise. Simulation
agrees, and families and power hold too: `make benchmarks-statistics`, docs/intervals.md.

It is the least cautious rule that we know of those that never err more often than they say at the
levels Holm grants. Howe's sum of squares is stricter there. Satterthwaite's t and the matching
prior of Ghosh and Kim (2001, Canadian J. Stat. 29) stay nearer to 95 %, but with 3 seeds and at a
rate of 0.05 / 8 err up to five times and twice as often as they say.

An interval also reaches at least half as far as the normal would over drawn questions: seeds that
agree by luck must not prove anything. Reaching all of it would cover 98.7 % where 3 seeds do not
differ at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import erfc, sqrt

import numpy as np

from analysis.statistics.weights import Floats

_NODES = 128
_LEAST_REACH = 0.5  # of the normal's over drawn questions
_RARE = 1e-7  # weight of a node that an expectation can do without


@dataclass(frozen=True)
class Spread:
    """Parts of the variance of a mean over seeds; all in the square of its unit.

    seeds: S; of_seeds: variance of the seeds' estimates over S, 0 for one seed; of_questions: of
    the mean when questions are drawn again; shared: covariance of two seeds' estimates when
    questions are drawn again, so the part of `of_questions` that more seeds would not lessen.
    """

    seeds: int
    of_seeds: float
    of_questions: float
    shared: float

    @property
    def se(self) -> float:
        """Standard error: of both parts, and no less than that of drawn questions alone."""
        return sqrt(max(self.of_seeds + self.shared, self.of_questions))

    def p_value(self, distance: float) -> float:
        """Probability that the mean is `distance` or more from the truth, at most."""
        return float(self._p(np.array([abs(distance)]), np.array([self.of_seeds]))[0])

    def reach(self, rate: float) -> float:
        """The distance that is exceeded with probability `rate`, 0 < rate < 1, at most."""
        return float(self._reach(rate, np.array([self.of_seeds]))[0])

    def power(self, effect: float, rate: float = 0.05) -> float:
        """Probability that a two-sided test at `rate` finds a true effect of this size.

        The variance is taken for the truth: the next study estimates its seed part anew.
        """
        return self._chance(rate)(abs(effect))

    def smallest_effect(self, rate: float = 0.05, power: float = 0.8) -> float:
        """The effect that has this `power`, rate < power < 1."""
        chance = self._chance(rate)
        return float(_rising(lambda x: np.array([chance(x[0]) - power]), np.array([self.se]))[0])

    def _p(self, distance: Floats, of_seeds: Floats) -> Floats:
        """p [n] of distances [n] where the seed part was found to be of_seeds [n]."""
        share, weight = _mean_squares(self.seeds - 1)
        sd = np.sqrt(of_seeds[:, None] / share + self.shared)
        least = sqrt(self.of_questions) * _LEAST_REACH
        with np.errstate(divide="ignore", invalid="ignore"):
            far = np.nan_to_num(distance[:, None] / sd, posinf=np.inf)  # 0 / 0: no distance
            floor = np.nan_to_num(distance / least, posinf=np.inf)
        return np.maximum(_erfc(far / sqrt(2)) @ weight, _erfc(floor / sqrt(2)))

    def _reach(self, rate: float, of_seeds: Floats) -> Floats:
        start = np.full(len(of_seeds), self.se)
        return _rising(lambda distance: rate - self._p(distance, of_seeds), start)

    def _chance(self, rate: float) -> Callable[[float], float]:
        """Power as a function of the effect."""
        # Seeds cannot truly differ less than the noise of their answers makes them.
        of_seeds = max(self.of_seeds, self.of_questions - self.shared)
        share, weight = _mean_squares(self.seeds - 1)
        share, weight = share[weight > _RARE], weight[weight > _RARE]
        reach = self._reach(rate, of_seeds * share)

        def chance(effect: float) -> float:
            if self.se == 0:
                return float(effect > 0)
            above, below = (reach - effect) / self.se, (reach + effect) / self.se
            tails = _erfc(above / sqrt(2)) + _erfc(below / sqrt(2))
            return float(tails @ weight / weight.sum() / 2)

        return chance


def _erfc(values: Floats) -> Floats:
    return np.array([*map(erfc, values.ravel().tolist())]).reshape(values.shape)


@lru_cache(maxsize=64)
def _mean_squares(df: int) -> tuple[Floats, Floats]:
    """Values [n] of chi-square / df, and their weights [n]; the single 1 for df 0 (known well).

    The trapezoid rule on the logarithm, which converges fast: its integrand is smooth and dies out.
    """
    if df == 0:
        return np.ones(1), np.ones(1)
    width = 12 * sqrt(2 / df)
    log = np.linspace(-42 / df - width, np.log(1 + 74 / df + width), _NODES)
    weight = np.exp(df / 2 * (log - np.exp(log) + 1))
    return np.exp(log), weight / weight.sum()


def _rising(excess: Callable[[Floats], Floats], start: Floats) -> Floats:
    """Where a rising function of x [n] >= 0 crosses 0, by bisection; 0 where `start` is 0."""
    high = start.copy()
    while (short := (excess(high) < 0) & (start > 0)).any():
        high[short] *= 2
    low = np.zeros_like(high)
    for _ in range(40):
        middle = (low + high) / 2
        short = excess(middle) < 0
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    return high
