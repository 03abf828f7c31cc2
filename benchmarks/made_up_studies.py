"""Made-up studies whose truth is known: S seeds of two arms answer the same Q questions.

Each seed and each question has an effect of its own on the statistic, normal with the deviation
told and in its unit, around the planted effect; answers are drawn on top.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from statistics import NormalDist

import numpy as np

from analysis.statistics import Bootstrap, bootstrap_auroc, bootstrap_mean, bootstrap_trend

SAMPLES = 4  # answers to a question
ROWS = 2  # of a question that a score ranks
WINDOWS = 5
REPLICATES = 200  # of a study; enough for a variance, and there are thousands of studies


@dataclass(frozen=True)
class World:
    """seeds, questions: how many; the rest in the unit of the statistic."""

    seeds: int
    questions: int
    seed_sd: float
    question_sd: float
    effect: float = 0.0


def difference(world: World, rng: np.random.Generator) -> Bootstrap:
    """Accuracy of two arms, paired by seed and question."""
    middle = rng.uniform(0.4, 0.6, world.questions)
    apart = _effects(world, rng) / 2
    right = [rng.binomial(SAMPLES, np.clip(middle + side * apart, 0, 1)) for side in (1, -1)]
    return bootstrap_mean((right[0] - right[1]) / SAMPLES, REPLICATES)


def trend(world: World, rng: np.random.Generator) -> Bootstrap:
    """Rise of a share from the first window to the last; trials differ, as fresh answers do."""
    middle = rng.uniform(0.4, 0.6, world.questions)
    places = np.linspace(-0.5, 0.5, WINDOWS)[None, :, None]
    share = np.clip(middle + _effects(world, rng)[:, None, :] * places, 0, 1)
    trials = rng.integers(1, SAMPLES + 1, share.shape)
    hits = rng.binomial(trials, share)
    made = bootstrap_trend(hits, trials, np.arange(WINDOWS), REPLICATES)
    return made.scaled(WINDOWS - 1)


def separation(world: World, rng: np.random.Generator) -> Bootstrap:
    """AUROC less 0.5 of a normal score; positive rows lie higher by the effect."""
    shape = (world.seeds, world.questions, ROWS)
    positive = rng.random(shape) < rng.uniform(0.2, 0.8, (1, world.questions, 1))
    by_question = rng.normal(0, 2 * sqrt(pi) * world.question_sd, (1, world.questions))
    by_seed = world.effect + rng.normal(0, world.seed_sd, (world.seeds, 1))
    # A seed's rows are normal with variance 1, positive ones with that of the questions on top.
    spread = sqrt(2 + (2 * sqrt(pi) * world.question_sd) ** 2)
    quantile = np.vectorize(NormalDist().inv_cdf)(np.clip(0.5 + by_seed, 0.01, 0.99))
    score = rng.normal(0, 1, shape) + positive * (spread * quantile + by_question)[:, :, None]
    seed, question, _ = np.indices(shape)
    parts = (score, positive, question, seed)
    made = bootstrap_auroc(*(part.ravel() for part in parts), replicates=REPLICATES)
    return Bootstrap(made.by_seed - 0.5, made.by_question - 0.5, made.replicates - 0.5, 0)


def _effects(world: World, rng: np.random.Generator) -> np.ndarray:
    """[S, Q]: the planted effect, that of each seed and that of each question."""
    by_seed = rng.normal(0, world.seed_sd, (world.seeds, 1))
    return world.effect + by_seed + rng.normal(0, world.question_sd, (1, world.questions))


Study = Callable[[World, np.random.Generator], Bootstrap]
STUDIES: dict[str, Study] = {"difference": difference, "trend": trend, "AUROC": separation}


def studies(kind: str, world: World, count: int, seed: int = 0) -> list[Bootstrap]:
    """`count` studies of one kind in one world; the seed fixes them, apart from those of others."""
    rng = np.random.default_rng([seed, *f"{kind} {world}".encode()])
    return [STUDIES[kind](world, rng) for _ in range(count)]
