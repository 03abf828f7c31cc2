"""Permutation test of two arms' labels within question."""

from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from analysis.statistics.means import complete

EXACT = 16  # questions that differ, up to which all 2^n assignments are made
DRAWS = 10_000


def permutation_p(values: ArrayLike, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided p that the labels of two arms are exchangeable within every question.

    values: [S, Q], first arm minus second. To swap the labels of a question flips the sign of its
    differences, those of all seeds together, for they share the question. With few questions all
    assignments are made, else `draws` at random, and the data counts as one (Phipson and Smyth
    2010). A question with a NaN is left out. Raises ValueError when none is left.

    It conditions on the models that were trained: a small p says that these models differ on such
    questions, not that training again would. So it stands beside `Bootstrap.interval` and makes
    no verdict.
    """
    totals = complete(values).sum(axis=0)
    totals = totals[totals != 0]  # a question without a difference has nothing to swap
    least = abs(totals.sum()) - 1e-9 * np.abs(totals).sum()  # sums of equal numbers may round apart
    if len(totals) <= EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=len(totals))))
        return float((np.abs(signs @ totals) >= least).mean())
    rng = np.random.default_rng(seed)
    signs = 2.0 * rng.integers(0, 2, (draws, len(totals))) - 1
    return float((1 + (np.abs(signs @ totals) >= least).sum()) / (1 + draws))
