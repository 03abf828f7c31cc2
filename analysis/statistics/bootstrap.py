"""The bootstrap over training seeds and questions, paired by both.

Every bootstrapped statistic is the mean over training seeds of a statistic of one seed. The
bootstrap is hierarchical and crossed: every replicate draws training seeds and, on its own,
questions, and a cell (seed, question) counts as often as both were drawn.

Intervals are built on the seeds' own variance and on what the replicates say about questions: see
`analysis.statistics.spread`. The percentiles of the replicates, which are the usual interval,
cannot reach beyond the seeds at hand where these are few, and count the noise of answers twice,
once for the seeds and once for the questions. How often each holds the truth is measured by `make
benchmarks-statistics`: see docs/intervals.md.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from analysis.statistics.spread import Spread
from analysis.statistics.weights import Floats, draw_weights, widen

REPLICATES = 10_000
_CHUNK = 2_000_000  # weights held at once, to bound memory


@dataclass(frozen=True)
class Bootstrap:
    """A mean over seeds, on the data and on every replicate.

    by_seed: [S], the statistic of each seed; by_question: [R, S], the same over drawn questions;
    replicates: [R], the mean over drawn questions and seeds (with one seed over questions only).
    NaN where a draw held nothing to take the statistic of.
    """

    by_seed: Floats
    by_question: Floats
    replicates: Floats
    questions: int

    @property
    def value(self) -> float:
        return float(self.by_seed.mean())

    @property
    def seeds(self) -> int:
        return len(self.by_seed)

    @cached_property
    def spread(self) -> Spread:
        """The variance of `value` by its parts."""
        drawn = self.by_question[~np.isnan(self.by_question).any(axis=1)]
        of_questions = float(drawn.mean(axis=1).var(ddof=1))
        if self.seeds == 1:
            return Spread(1, 0.0, of_questions, of_questions)
        of_seeds = float(self.by_seed.var(ddof=1)) / self.seeds
        own = float(drawn.var(axis=0, ddof=1).mean())
        # The mean covariance of two seeds, from the variance of their mean; noise can make it < 0.
        shared = max((self.seeds * of_questions - own) / (self.seeds - 1), 0.0)
        return Spread(self.seeds, of_seeds, of_questions, shared)

    @property
    def se(self) -> float:
        """Standard error of `value`."""
        return self.spread.se

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Interval that misses the truth at the rate 1 - level; without a null when p < that."""
        half = self.spread.reach(1 - level)
        return self.value - half, self.value + half

    def percentiles(self, level: float = 0.95) -> tuple[float, float]:
        """The usual bootstrap interval, to compare with."""
        return percentiles(self.replicates, level)

    def p_value(self, null: float = 0.0) -> float:
        """Two-sided p of `null`: the rate at which `interval` would just reach it."""
        return self.spread.p_value(self.value - null)

    def power(self, effect: float, rate: float = 0.05) -> float:
        """Probability that a study with this variance finds an effect, tested at `rate`."""
        return self.spread.power(effect, rate)

    def smallest_effect(self, rate: float = 0.05, power: float = 0.8) -> float:
        """The effect that a two-sided test at `rate` finds with probability `power`."""
        return self.spread.smallest_effect(rate, power)

    def minus(self, other: "Bootstrap") -> "Bootstrap":
        """Paired difference; both must come from the same draws (same seed, same units)."""
        return Bootstrap(
            self.by_seed - other.by_seed,
            self.by_question - other.by_question,
            self.replicates - other.replicates,
            self.questions,
        )

    def scaled(self, factor: float) -> "Bootstrap":
        """The same statistic in another unit."""
        return Bootstrap(
            factor * self.by_seed,
            factor * self.by_question,
            factor * self.replicates,
            self.questions,
        )


def percentiles(replicates: Floats, level: float) -> tuple[float, float]:
    """The percentile interval of replicates [R]; NaN ones are left out."""
    tail = (1 - level) / 2
    low, high = np.nanquantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap(
    by_seed: Callable[[Floats], Floats],
    questions: int,
    replicates: int,
    seed: int,
    width: int,
) -> Bootstrap:
    """Bootstrap of the mean over seeds of `by_seed`: question weights [r, Q] to estimates [r, S].

    width: weights that one replicate holds in memory. Raises ValueError when the data or most
    draws hold nothing to take the statistic of.
    """
    on_data = by_seed(np.ones((1, questions)))[0]
    if np.isnan(on_data).any():
        raise ValueError("a seed has nothing to take the statistic of")
    rng = np.random.default_rng(seed)
    drawn = np.empty((replicates, len(on_data)))
    weights = np.empty_like(drawn)
    size = max(1, _CHUNK // max(width, 1))
    for start in range(0, replicates, size):
        part = slice(start, min(start + size, replicates))
        rows = part.stop - part.start
        weights[part] = widen(draw_weights(len(on_data), rows, rng))
        drawn[part] = by_seed(draw_weights(questions, rows, rng))
    if np.isnan(drawn).any(axis=1).mean() > 0.5:
        raise ValueError("there are too few questions to draw from")
    return Bootstrap(on_data, drawn, (drawn * weights).mean(axis=1), questions)
