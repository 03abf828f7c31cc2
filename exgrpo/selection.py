"""Which questions are drawn from the buffer, and which of their trajectories are replayed.

Paper section 4.1, Algorithm 1 lines 8 to 11 and Algorithm 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

import numpy as np

from exgrpo.buckets import Buckets
from exgrpo.experience import Trajectory
from exgrpo.settings import Experience, Metric

RELEASED_CHUNK = 8  # [code] sequences a forward when trajectories are scored
METRICS: tuple[str, ...] = get_args(Metric)


@dataclass(frozen=True)
class Draw:
    """A question drawn from the buffer, with the bucket that it lay in."""

    question: str
    bucket: int


@dataclass(frozen=True)
class Candidate:
    """A stored trajectory that may be replayed, with its metrics under the policy now.

    mean_entropy, nll: nat/token over the response, end token included. summed_entropy: nat.
    released: see `released_metric`.
    """

    trajectory: Trajectory
    mean_entropy: float
    summed_entropy: float
    nll: float
    released: float

    @property
    def length(self) -> int:
        return len(self.trajectory)

    @property
    def birth_entropy(self) -> float:
        return self.trajectory.birth_entropy


def bucket_weights(group_size: int, experience: Experience) -> np.ndarray | None:
    """Weight of bucket 1 .. K-1, [K-1]; None where buckets do not count (`draw: questions`).

    The Gaussian is the released code's with sigma in success counts, and the paper's literal one,
    nearly uniform, with sigma in units of accuracy k / K (facts 1.5).
    """
    counts = np.arange(1, group_size)
    match experience.draw:
        case "gaussian":
            unit = 1 if experience.sigma_unit == "count" else group_size
            centre, width = experience.mu * group_size, experience.sigma * unit
            return np.exp(-0.5 * ((counts - centre) / width) ** 2)
        case "linear":
            return counts / group_size
        case "sqrt":
            return np.sqrt(counts / group_size)
        case "uniform":
            return np.ones(group_size - 1)
        case "questions":
            return None


def draw_questions(
    buckets: Buckets, count: int, weights: np.ndarray | None, rng: np.random.Generator
) -> list[Draw]:
    """Up to `count` distinct questions (Algorithm 2).

    A multinomial over the non-empty buckets says how many come from each; what a bucket cannot
    give is drawn again, one at a time, among buckets with room; within a bucket every question is
    as likely as another, without replacement. weights None: every question is as likely.
    """
    filled = sorted(buckets.members)
    sizes = np.array([len(buckets.members[bucket]) for bucket in filled], dtype=int)
    count = min(count, len(buckets))
    if count == 0:
        return []
    if weights is None:
        taken = rng.multivariate_hypergeometric(sizes, count)
    else:
        taken = _spread(count, sizes, weights[np.array(filled) - 1], rng)
    return [
        Draw(buckets.members[bucket][index], bucket)
        for bucket, number in zip(filled, taken, strict=True)
        for index in rng.choice(len(buckets.members[bucket]), size=number, replace=False)
    ]


def _spread(
    count: int, sizes: np.ndarray, weight: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """How many of `count` come from each bucket, [buckets]; no more than it holds."""
    taken = np.zeros_like(sizes)
    if weight.any():
        taken = np.minimum(rng.multinomial(count, weight / weight.sum()), sizes)
        for _ in range(count - int(taken.sum())):
            room = np.where(taken < sizes, weight, 0.0)
            if not room.any():
                break
            taken[rng.choice(len(sizes), p=room / room.sum())] += 1
    # Where only buckets out of a narrow Gaussian's reach have room: every question alike [code].
    left = count - int(taken.sum())
    return taken + rng.multivariate_hypergeometric(sizes - taken, left)


def rank_candidates(
    candidates: Sequence[Candidate], experience: Experience, rng: np.random.Generator
) -> list[Candidate]:
    """Candidates of one question in the arm's order; the first are replayed (line 11).

    Ties go to the older trajectory. RePO's rules: `recent` newest first; `reward` right ones
    first, newest first among them; `variance` right and wrong by turns, newest first.
    """
    newest = sorted(candidates, key=lambda each: -each.trajectory.birth_step)
    match experience.order:
        case "lowest":
            return sorted(candidates, key=lambda each: getattr(each, experience.metric))
        case "highest":
            return sorted(candidates, key=lambda each: -getattr(each, experience.metric))
        case "random":
            return [candidates[index] for index in rng.permutation(len(candidates))]
        case "recent":
            return newest
        case "reward":
            return sorted(newest, key=lambda each: not each.trajectory.correct)
        case "variance":
            return _by_turns(newest)


def _by_turns(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Right, wrong, right, ...: any first m of them have the greatest variance of the reward."""
    places: list[tuple[int, bool, Candidate]] = []
    seen = {True: 0, False: 0}
    for each in candidates:
        correct = each.trajectory.correct
        places.append((seen[correct], not correct, each))
        seen[correct] += 1
    return [each for *_, each in sorted(places, key=lambda place: place[:2])]


def released_metric(
    entropies: Sequence[np.ndarray], lengths: Sequence[int], width: int
) -> list[float]:
    """What the released code takes for the mean entropy of each candidate (facts 1.6, LUFFY#57).

    entropies[i]: of every token of candidate i after the first of its prompt, nat. lengths[i]: its
    response tokens. width: columns of the padded response tensor (`max_new_tokens`).

    Three faults, as released: the mask selects padding; the entropies are aligned to the right end,
    with zeros before them, where the mask is aligned to the left; and the mask is row `i mod 8` of
    the last chunk of 8, so usually another response's (a row that fills up the last chunk has
    length 0). A mask that selects nothing gives 0, as verl's masked mean does.
    """
    last = (len(lengths) - 1) // RELEASED_CHUNK * RELEASED_CHUNK
    metrics = []
    for index, values in enumerate(entropies):
        other = last + index % RELEASED_CHUNK
        masked_from = lengths[other] if other < len(lengths) else 0
        aligned = np.zeros(width)
        shown = values[-width:]
        aligned[width - len(shown) :] = shown
        selected = aligned[masked_from:]
        metrics.append(float(selected.mean()) if len(selected) else 0.0)
    return metrics
