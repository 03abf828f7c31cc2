"""The mean over seeds and questions; for two arms, of their paired difference."""

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.bootstrap import REPLICATES, Bootstrap, bootstrap
from analysis.statistics.weights import Floats


def bootstrap_mean(values: ArrayLike, replicates: int = REPLICATES, seed: int = 0) -> Bootstrap:
    """Mean of values [S, Q] over seeds and questions, both drawn again in every replicate.

    For two arms pass the difference of their values: pairs by seed and question then stay
    together. A question with a NaN in any seed is left out. Raises ValueError when none is left.
    """
    table = complete(values)
    questions = table.shape[1]
    return bootstrap(lambda w: w @ table.T / questions, questions, replicates, seed, questions)


def complete(values: ArrayLike) -> Floats:
    """values [S, Q] without the questions that have a NaN. ValueError when none is left."""
    table = np.asarray(values, dtype=float)
    if table.ndim != 2:
        raise ValueError(f"need values [seeds, questions], got shape {table.shape}")
    table = table[:, ~np.isnan(table).any(axis=0)]
    if table.size == 0:
        raise ValueError("no question has a value in every seed")
    return table
