"""Made-up candidates for replay, and the names of them in an arm's order."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from exgrpo.experience import Trajectory
from exgrpo.selection import Candidate, rank_candidates
from exgrpo.settings import Experience


def a_candidate(name: int, step: int = 1, correct: bool = True, **metrics: float) -> Candidate:
    length, birth = int(metrics.pop("length", 1)), metrics.pop("birth_entropy", 0.0)
    held = np.zeros(length, np.int32), np.zeros(length, np.float32)
    trajectory = Trajectory(f"{name}", "q", [1], *held, step, birth, correct, f"{name}")
    known = dict.fromkeys(("mean_entropy", "summed_entropy", "nll", "released"), 0.0)
    return Candidate(trajectory, **known | metrics)


def ranked(candidates: Sequence[Candidate], seed: int = 0, **how: Any) -> list[int]:
    """Names of the candidates in the arm's order."""
    rng = np.random.default_rng(seed)
    found = rank_candidates(candidates, Experience(**how), rng)
    return [int(each.trajectory.id) for each in found]
