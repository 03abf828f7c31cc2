"""The test of C8: does the flawed share rise faster under one way to replay than another?"""

import numpy as np
import polars as pl

from analysis.arms import REFERENCE
from analysis.claims.finding import (
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    shared_seeds,
    two_arms,
)
from analysis.claims.ledger import Claim, Unit
from analysis.claims.show import with_interval
from analysis.statistics import bootstrap_trend, mann_kendall

STEPS_OF_A_SLOPE = 100  # as the unit says: points per 100 steps


def flawed_trend_difference(claim: Claim, frames: Frames) -> Finding:
    """Slope of the flawed share over training, first arm minus second."""
    counts = answer_of(claim, frames)
    first, second = two_arms(claim)
    counts = counts.filter(pl.col("seed").is_in(shared_seeds(claim, counts)))
    try:
        times, arrays = _flawed_counts(counts, (first, second))
        # Both arms over the same windows and questions: their draws are the same, so they pair.
        trends = {arm: bootstrap_trend(*arrays[arm], times) for arm in arrays}
        made = trends[first].minus(trends[second]).scaled(STEPS_OF_A_SLOPE)
    except ValueError as error:
        raise NotTestableError(str(error)) from error
    notes = [_own_trend(counts, arm, claim.unit) for arm in (first, second, REFERENCE)]
    notes.append(
        f"The test compares the two replay arms only. A snowball needs a rise that {REFERENCE} "
        "lacks. Own slopes carry 95 % intervals, not adjusted for several comparisons."
    )
    return Finding(made, notes, least=-np.inf, greatest=np.inf)


def _flawed_counts(
    counts: pl.DataFrame, arms: tuple[str, ...]
) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Starts of windows [W], and hits and trials [S, W, Q] of each arm.

    Windows in which a seed of an arm has no trial are left out.
    """
    rows = counts.filter(pl.col("arm").is_in(arms))
    axes = [rows[name].unique().sort().to_list() for name in ("seed", "window_start", "question")]
    hits, trials = (np.zeros((len(arms), *map(len, axes))) for _ in range(2))
    places = [{value: at for at, value in enumerate(axis)} for axis in ([*arms], *axes)]
    cells = tuple(
        [place[value] for value in rows[name]]
        for place, name in zip(places, ("arm", "seed", "window_start", "question"), strict=True)
    )
    hits[cells], trials[cells] = rows["flawed"].to_numpy(), rows["right_fresh"].to_numpy()
    kept = (trials.sum(axis=3) > 0).all(axis=(0, 1))
    arrays = {arm: (hits[at][:, kept], trials[at][:, kept]) for at, arm in enumerate(arms)}
    return np.array(axes[1], dtype=float)[kept], arrays


def _own_trend(counts: pl.DataFrame, arm: str, unit: Unit) -> str:
    try:
        times, arrays = _flawed_counts(counts, (arm,))
        hits, trials = arrays[arm]
        trend = bootstrap_trend(hits, trials, times).scaled(STEPS_OF_A_SLOPE)
    except ValueError:
        return f"{arm}: no trend in this study."
    share = hits.sum(axis=(0, 2)) / trials.sum(axis=(0, 2))
    return (
        f"{arm}: own slope {with_interval(trend.value, *trend.interval(), unit)}; flawed share "
        f"{100 * share[0]:.1f} % in the first window, {100 * share[-1]:.1f} % in the last, "
        f"Mann-Kendall tau {mann_kendall(share).tau:+.2f}."
    )
