"""The interquartile mean over runs and tasks (Agarwal et al. 2021, NeurIPS; their rliable)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.bootstrap import REPLICATES, percentiles
from analysis.statistics.weights import Floats


@dataclass(frozen=True)
class InterquartileMean:
    """On the data, and on every replicate [R]."""

    value: float
    replicates: Floats

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Percentile interval of the given level."""
        return percentiles(self.replicates, level)


def iqm(values: ArrayLike) -> float:
    """Mean of the middle half of values of any shape; n // 4 are cut at either end.

    Raises ValueError without a value, or with a NaN.
    """
    return float(_middle_mean(_checked(values).reshape(1, -1))[0])


def bootstrap_iqm(
    values: ArrayLike, replicates: int = REPLICATES, seed: int = 0
) -> InterquartileMean:
    """IQM of values [runs, tasks]; every replicate draws runs anew within each task.

    It speaks of other runs on the same tasks. With 5 runs or fewer the middle half holds few values
    and the interval is rough, too narrow rather than too wide. Raises ValueError as `iqm`.
    """
    table = _checked(values)
    if table.ndim != 2:
        raise ValueError(f"need values [runs, tasks], got shape {table.shape}")
    runs, tasks = table.shape
    drawn = np.random.default_rng(seed).integers(0, runs, (replicates, runs, tasks))
    made = table[drawn, np.arange(tasks)].reshape(replicates, -1)
    return InterquartileMean(iqm(table), _middle_mean(made))


def _checked(values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=float)
    if table.size == 0 or np.isnan(table).any():
        raise ValueError("need values, none of them NaN")
    return table


def _middle_mean(rows: Floats) -> Floats:
    """Interquartile mean [r] of rows [r, n]."""
    cut = rows.shape[1] // 4
    return np.sort(rows, axis=1)[:, cut : rows.shape[1] - cut].mean(axis=1)
