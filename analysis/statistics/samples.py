"""Accuracy of questions that were answered several times: avg@k and pass@k."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.statistics.weights import Floats


def avg_at_k(correct: ArrayLike, samples: ArrayLike) -> Floats:
    """Share of right samples of each question; NaN where there is no sample. Any shape."""
    right, count = np.asarray(correct, float), np.asarray(samples, float)
    _check_counts(right, count)
    return np.divide(right, count, out=np.full(right.shape, np.nan), where=count > 0)


def pass_at_k(correct: ArrayLike, samples: ArrayLike, k: int) -> Floats:
    """Unbiased pass@k of each question: 1 - C(n - c, k) / C(n, k). Any shape.

    Raises ValueError when k < 1 or a question has fewer than k samples: no estimate is unbiased
    then.
    """
    right, count = np.asarray(correct, int), np.asarray(samples, int)
    _check_counts(right, count)
    if k < 1 or (count < k).any():
        raise ValueError(f"pass@{k} needs k >= 1 and at least {k} samples of every question")
    fail = np.ones(right.shape)
    for i in range(k):
        fail *= np.maximum(count - right - i, 0) / (count - i)
    return 1 - fail


def _check_counts(right: NDArray, count: NDArray) -> None:
    if right.shape != count.shape or (right < 0).any() or (right > count).any():
        raise ValueError("need 0 <= correct <= samples, in arrays of one shape")
