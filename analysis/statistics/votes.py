"""maj@k: how often the most frequent of k sampled answers is right."""

from collections.abc import Sequence
from math import comb

import numpy as np

from analysis.statistics.weights import Floats


def maj_at_k(right: Sequence[int], wrong: Sequence[int], silent: int) -> Floats:
    """Unbiased maj@k [n] of one question for k = 1 .. n, by counting all draws of k of n samples.

    right, wrong: how often each right and each wrong answer was given; silent: samples without an
    answer, which do not vote; n is their sum. Of answers that tie the share of right ones counts,
    which is what drawing one of them gives on average; a draw in which nobody votes is wrong. Ours.

    The draws are counted by generating functions, not one by one: for every number of votes a with
    which a right answer may win, the ways in which all others get at most a, by how many tie.
    """
    n = sum(right) + sum(wrong) + silent
    made = np.zeros(n + 1)
    for place, own in enumerate(right):
        others = [*right[:place], *right[place + 1 :], *wrong]
        for votes in range(1, own + 1):
            ways = _ways(others, silent, votes, n)  # [ties, drawn]
            shares = (ways / np.arange(1, len(ways) + 1)[:, None]).sum(axis=0)
            made[votes:] += comb(own, votes) * shares[: n + 1 - votes]
    return made[1:] / np.array([float(comb(n, k)) for k in range(1, n + 1)])


def _ways(others: Sequence[int], silent: int, votes: int, n: int) -> Floats:
    """Ways [t, d] to draw d samples of the others and the silent, at most `votes` of each answer.

    t of the others get just as many votes. A tie of several right answers shares the vote as well:
    each of them is counted in its own turn.
    """
    most_ties = sum(own >= votes for own in others)
    ways = np.zeros((most_ties + 1, n + 1))
    ways[0, : silent + 1] = [comb(silent, drawn) for drawn in range(silent + 1)]
    for own in others:
        before, ways = ways, np.zeros_like(ways)
        for drawn in range(min(own, votes) + 1):
            tie = int(drawn == votes)
            ways[tie:, drawn:] += comb(own, drawn) * before[: len(before) - tie, : n + 1 - drawn]
    return ways
