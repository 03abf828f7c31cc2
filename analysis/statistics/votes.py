"""maj@k: how often the most frequent of k sampled answers is right."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate

import numpy as np

from analysis.statistics.weights import Floats


def maj_at_k(right: Sequence[int], wrong: Sequence[int], silent: int) -> Floats:
    """Unbiased maj@k [n] of one question for k = 1 .. n, by counting all draws of k of n samples.

    right, wrong: how often each right and each wrong answer was given; silent: samples without an
    answer, which do not vote; n is their sum. Of answers that tie the share of right ones counts,
    which is what drawing one of them gives on average; a draw in which nobody votes is wrong. Ours.

    The draws are counted by generating functions, not one by one: for every number of votes a with
    which a right answer may win, the chance that all others get at most a, by how many tie.
    """
    n = sum(right) + sum(wrong) + silent
    made = np.zeros(n + 1)
    for place, own in enumerate(right):
        others = [*right[:place], *right[place + 1 :], *wrong]
        rest = n - own
        for votes in range(1, own + 1):
            chances = _chances(others, silent, votes)  # [ties, drawn]
            shares = (chances / np.arange(1, len(chances) + 1)[:, None]).sum(axis=0)
            made[votes : votes + rest + 1] += _splits(own, rest)[votes] * shares
    return made[1:]


def _chances(others: Sequence[int], silent: int, votes: int) -> Floats:
    """Chance [t, d] that of d samples of the others and the silent no answer has over `votes`.

    t of the others get just as many votes. A tie of several right answers shares the vote as well:
    each of them is counted in its own turn.
    """
    most_ties = sum(own >= votes for own in others)
    chances = np.zeros((most_ties + 1, silent + 1))
    chances[0] = 1
    rest = silent
    for own in others:
        before, chances = chances, np.zeros((most_ties + 1, rest + own + 1))
        for drawn in range(min(own, votes) + 1):
            tie = int(drawn == votes)
            part = _splits(own, rest)[drawn] * before[: len(before) - tie]
            chances[tie:, drawn : drawn + rest + 1] += part
        rest += own
    return chances


@lru_cache(maxsize=1024)  # as many as a question of a thousand answers, all unlike, asks for
def _splits(own: int, rest: int) -> Floats:
    """Chance [j, d] that a draw of j + d of own + rest samples holds j of `own`.

    From whole numbers: the counts of draws themselves are beyond a float from 1030 samples on.
    """
    mine, others, both = _draws(own), _draws(rest), _draws(own + rest)
    return np.array(
        [[m * o / both[j + d] for d, o in enumerate(others)] for j, m in enumerate(mine)]
    )


def _draws(n: int) -> list[int]:
    """C(n, k) for k = 0 .. n."""
    return list(accumulate(range(n), lambda ways, k: ways * (n - k) // (k + 1), initial=1))
