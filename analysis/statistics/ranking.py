"""AUROC: does a score rank the rows of one kind above those of the other?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analysis.statistics.bootstrap import Bootstrap, bootstrap
from analysis.statistics.weights import Floats

AUROC_REPLICATES = 2_000


@dataclass(frozen=True)
class _Ranking:
    """Rows sorted by stratum and score, with the bounds of ties and strata in that order."""

    order: NDArray[np.int64]
    positive: NDArray[np.bool_]
    tie_start: NDArray[np.int64]
    tie_end: NDArray[np.int64]
    stratum_start: NDArray[np.int64]
    stratum_end: NDArray[np.int64]

    def auroc(self, weights: Floats) -> Floats:
        """AUROC [r] under row weights [r, N]: pairs of one stratum only, ties count half."""
        sorted_weights = weights[:, self.order]
        negative = np.where(self.positive, 0.0, sorted_weights)
        cumulative = np.zeros((len(weights), len(self.order) + 1))
        np.cumsum(negative, axis=1, out=cumulative[:, 1:])
        at = np.flatnonzero(self.positive)
        base = cumulative[:, self.stratum_start[at]]
        below = (cumulative[:, self.tie_start[at]] + cumulative[:, self.tie_end[at]]) / 2 - base
        pairs = cumulative[:, self.stratum_end[at]] - base
        by_positive = sorted_weights[:, at]
        with np.errstate(invalid="ignore", divide="ignore"):
            return (by_positive * below).sum(axis=1) / (by_positive * pairs).sum(axis=1)


def _rank(scores: ArrayLike, positive: ArrayLike, strata: ArrayLike | None) -> _Ranking:
    score, label = np.asarray(scores, float), np.asarray(positive, bool)
    if np.isnan(score).any():
        raise ValueError("a score is NaN: leave such rows out first")
    stratum = (
        np.zeros(len(score), int)
        if strata is None
        else np.unique(np.asarray(strata), return_inverse=True)[1]
    )
    order = np.lexsort((score, stratum))
    score, stratum = score[order], stratum[order]
    new_stratum = np.r_[True, stratum[1:] != stratum[:-1]] if len(score) else np.zeros(0, bool)
    new_tie = new_stratum | (np.r_[True, score[1:] != score[:-1]] if len(score) else new_stratum)
    tie_start, tie_end = _bounds(new_tie)
    stratum_start, stratum_end = _bounds(new_stratum)
    return _Ranking(order, label[order], tie_start, tie_end, stratum_start, stratum_end)


def _bounds(starts: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and one-past-last place [N] of the block that each place lies in."""
    edges = np.r_[np.flatnonzero(starts), len(starts)]
    block = np.cumsum(starts) - 1
    return edges[block], edges[block + 1]


def auroc(scores: ArrayLike, positive: ArrayLike, strata: ArrayLike | None = None) -> float:
    """Probability that a positive row scores above a negative one; ties count half.

    scores, positive, strata: [N]. With strata only pairs inside one stratum count, so that a
    difference between strata cannot pass for separation. NaN when there is no such pair.
    """
    ranking = _rank(scores, positive, strata)
    return float(ranking.auroc(np.ones((1, len(ranking.order))))[0])


def bootstrap_auroc(
    scores: ArrayLike,
    positive: ArrayLike,
    questions: ArrayLike,
    seeds: ArrayLike | None = None,
    strata: ArrayLike | None = None,
    replicates: int = AUROC_REPLICATES,
    seed: int = 0,
) -> Bootstrap:
    """Mean over training seeds of the AUROC of each, rows clustered on question; inputs [N].

    Pairs never cross seeds, nor strata. Two scores of the same rows with the same `seed` get the
    same draws, so their `minus` is paired. Raises ValueError when in some seed no positive and
    negative row share a stratum.
    """
    names, question_at = np.unique(np.asarray(questions), return_inverse=True)
    score, label = np.asarray(scores), np.asarray(positive)
    seed_at = np.zeros(len(score), int) if seeds is None else np.asarray(seeds)
    stratum = np.zeros(len(score), int) if strata is None else np.asarray(strata)
    parts = [seed_at == one for one in np.unique(seed_at)]
    ranked = [(_rank(score[rows], label[rows], stratum[rows]), question_at[rows]) for rows in parts]

    def aurocs(by_question: Floats) -> Floats:
        return np.stack([ranking.auroc(by_question[:, at]) for ranking, at in ranked], axis=1)

    if not ranked or np.isnan(aurocs(np.ones((1, len(names))))).any():
        raise ValueError("in a seed no positive and negative row share a stratum")
    width = max(len(names), *(int(rows.sum()) for rows in parts))
    return bootstrap(aurocs, len(names), replicates, seed, width)
