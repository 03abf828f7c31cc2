"""Trends over training: of a share, seed by seed, and of a series."""

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.bootstrap import REPLICATES, Bootstrap, bootstrap
from analysis.statistics.weights import Floats


def bootstrap_trend(
    hits: ArrayLike,
    trials: ArrayLike,
    times: ArrayLike,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> Bootstrap:
    """Trend of a share over time: least-squares slope of each seed, averaged over seeds.

    hits, trials: [S, W, Q] counts by seed, window and question; times: [W]. The share of a seed
    and window is its hits over its trials. Raises ValueError with fewer than two windows, or when
    a seed has a window without a trial.
    """
    hit, trial = np.asarray(hits, float), np.asarray(trials, float)
    places = np.asarray(times, float)
    if len(places) < 2:
        raise ValueError("fewer than two windows")
    slope_of = (places - places.mean()) / ((places - places.mean()) ** 2).sum()
    seeds, windows, questions = hit.shape

    def slopes(by_question: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            share = (hit @ by_question.T) / (trial @ by_question.T)
        return np.einsum("swr,w->rs", share, slope_of)

    return bootstrap(slopes, questions, replicates, seed, max(questions, seeds * windows))


@dataclass(frozen=True)
class Trend:
    """Mann-Kendall: S (rising minus falling pairs), tau-b (ties in the values), two-sided p."""

    s: int
    tau: float
    p: float


def mann_kendall(values: ArrayLike) -> Trend:
    """Trend test of values [T] in time order, by the normal approximation with tie correction.

    NaN values are left out. With fewer than three values, or all equal, tau is 0 and p is 1.
    Neighbouring windows of one run are not independent, so p is a description, not a verdict.
    """
    series = np.asarray(values, float)
    series = series[~np.isnan(series)]
    count = len(series)
    later, earlier = np.tril_indices(count, -1)
    s = int(np.sign(series[later] - series[earlier]).sum())
    ties = np.unique(series, return_counts=True)[1] if count else np.zeros(0, int)
    pairs = count * (count - 1) / 2
    untied = pairs - (ties * (ties - 1) / 2).sum()
    if count < 3 or untied == 0:
        return Trend(s, 0.0, 1.0)
    spread = count * (count - 1) * (2 * count + 5) - (ties * (ties - 1) * (2 * ties + 5)).sum()
    z = (abs(s) - 1) / sqrt(spread / 18) if s else 0.0
    return Trend(s, s / sqrt(pairs * untied), erfc(z / sqrt(2)))
