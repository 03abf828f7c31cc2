"""Draws of a bootstrap as weights, so that one matrix product makes all replicates."""

from math import sqrt

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]


def draw_weights(units: int, replicates: int, rng: np.random.Generator) -> Floats:
    """How often each unit was drawn: weights [replicates, units], rows sum to `units`."""
    drawn = rng.integers(0, units, (replicates, units)) + units * np.arange(replicates)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=replicates * units).reshape(replicates, units)
    return counts.astype(float)


def widen(weights: Floats) -> Floats:
    """Weights of few units, moved away from 1 so that their variance is unbiased.

    By sqrt(S / (S - 1)) for S units (Rao and Wu 1988, JASA 83): else it is (S - 1) / S of that.
    """
    units = weights.shape[1]
    return weights if units == 1 else 1 + sqrt(units / (units - 1)) * (weights - 1)
