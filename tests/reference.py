"""The objective a second time, slowly, in float64 NumPy. For tests only.

Written from the formulas: paper eq. 4 and 5, Dr.GRPO's advantage, PPO's clip, and what section 9 of
the facts says of the relatives. Of `exgrpo` only the settings are used, which say which formula.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from exgrpo.settings import Objective

Array = NDArray[np.float64]

# Masked GRPO at K = 8, the axis of the paper's Fig. 10: successes k -> difficulty.
DIFFICULTY = {1: "hard", 2: "hard", 3: "medium", 4: "medium", 5: "medium", 6: "easy", 7: "easy"}


@dataclass(frozen=True)
class Logged:
    """One trajectory of an update: float64 log-probabilities of its response tokens, nat.

    now: in this update; behaviour: under the policy that sampled it; previous: under the policy
    before this step; reference: under the KL's policy.
    """

    now: Array
    behaviour: Array
    previous: Array
    reference: Array | None
    advantage: float
    replayed: bool


@dataclass(frozen=True)
class Part:
    """What one trajectory adds to the loss; slopes: dL / d log p of each token; clipped: 0 or 1."""

    loss: float
    slopes: Array
    ratio: Array
    weight: Array
    clipped: Array


def group_advantages(
    rewards: Sequence[float], replayed: Sequence[bool], objective: Objective
) -> list[float]:
    """A_i = r_i - mean of the group, over its standard deviation (n - 1) if so set.

    NaN: ungraded, in no mean, advantage 0. `apart`: replayed and fresh ones are two groups.
    """
    found = []
    for reward, stored in zip(rewards, replayed, strict=True):
        if math.isnan(reward):
            found.append(0.0)
            continue
        peers = np.array(
            [
                other
                for other, theirs in zip(rewards, replayed, strict=True)
                if not math.isnan(other) and (objective.baseline == "joint" or theirs == stored)
            ]
        )
        advantage = reward - peers.mean()
        if objective.standardise:
            spread = peers.std(ddof=1) if len(peers) > 1 else 0.0
            advantage /= spread + 1e-6
        found.append(float(advantage))
    return found


def masked(successes: int, objective: Objective) -> bool:
    """Masked GRPO at K = 8: the group's difficulty is another than the arm's."""
    return objective.difficulty not in (None, DIFFICULTY.get(successes))


def token_share(
    length: int, sequences: int, tokens: int, longest: int, objective: Objective
) -> float:
    """What a token of a response of `length` counts in an update of so many sequences, tokens."""
    return {
        "constant": 1 / (sequences * longest),
        "constant_sum": 1 / longest,
        "sequence": 1 / (sequences * length),
        "token": 1 / tokens,
    }[objective.normaliser]


def _factor(ratio: float, replayed: bool, objective: Objective) -> tuple[float, float]:
    """f(w), the factor of the advantage at ratio w, and w f'(w), its derivative by log p."""
    if not replayed or objective.shaping == "none":
        return ratio, ratio
    if objective.shaping == "constant":
        return objective.constant * ratio, objective.constant * ratio
    beta = objective.beta
    return ratio / (ratio + beta), beta * ratio / (ratio + beta) ** 2


def sequence_part(each: Logged, share: float, clip: str, objective: Objective) -> Part:
    """Equation 4 for one trajectory, token by token, without the entropy bonus."""
    loss = 0.0
    slopes, ratios, weights, clips = (np.zeros(len(each.now)) for _ in range(4))
    clipping = clip == "all" or (clip == "fresh" and not each.replayed)
    for t, log_p in enumerate(each.now):
        current = each.replayed and objective.denominator == "current"
        ratio = math.exp(log_p - (each.previous if current else each.behaviour)[t])
        factor, slope = _factor(ratio, each.replayed, objective)
        bounded = min(max(ratio, 1 - objective.clip_low), 1 + objective.clip_high)
        edge, _ = _factor(bounded, each.replayed, objective)
        if clipping and edge * each.advantage < factor * each.advantage:  # PPO: the smaller one
            factor, slope, clips[t] = edge, 0.0, 1.0
        loss -= share * factor * each.advantage
        slopes[t] -= share * slope * each.advantage
        for weight, other in (
            (objective.kl_reference, each.reference),
            (objective.kl_previous, each.previous),
        ):
            if weight and other is not None:  # k3: r - log r - 1 with r = other / now
                r = math.exp(other[t] - log_p)
                loss += weight * share * (r - math.log(r) - 1)
                slopes[t] += weight * share * (1 - r)
        ratios[t], weights[t] = ratio, factor
    return Part(loss, slopes, ratios, weights, clips)


def clip_scale(norm: float, bound: float | None) -> float:
    """What gradient clipping multiplies a gradient of this norm with."""
    return 1.0 if bound is None else min(1.0, bound / (norm + 1e-6))
