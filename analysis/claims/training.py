"""Tests of claims on the course of training: one number a run, so Student's t over seeds."""

import math
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from analysis.claims.finding import (
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    frame_of,
    shared_seeds,
    two_arms,
)
from analysis.claims.ledger import Claim
from analysis.statistics import bootstrap_mean

LATE = 0.25  # the last quarter of the steps
PHASES = {"rollout_seconds": "rollouts", "select_seconds": "choosing", "update_seconds": "update"}
NOISY = "Time on a machine that others use is noisy: runs of one seed need not have met the same."


def late_entropy_difference(claim: Claim, frames: Frames) -> Finding:
    """Entropy of the fresh rollouts over the last quarter of training, first arm minus second."""
    values = _by_arm(claim, answer_of(claim, frames), _late_entropy)
    notes = [_arms_line(claim, values, "{:.3f} nat/token")]
    return _over_seeds(values[0] - values[1], notes, -math.inf, math.inf)


def step_time_ratio(claim: Claim, frames: Frames) -> Finding:
    """Logarithm of the time a step of the first arm over that of the second."""
    rows = answer_of(claim, frames).filter((pl.col("steps") > 0) & (pl.col("seconds") > 0))
    values = _by_arm(claim, rows, lambda run: float(run["seconds"][0] / run["steps"][0]))
    notes = [
        _arms_line(claim, values, "{:.3f} s a step"),
        *_phases(claim, frame_of("step_phases", frames)),
        NOISY,
    ]
    return _over_seeds(np.log(values[0] / values[1]), notes, -math.inf, math.inf)


def _phases(claim: Claim, rows: pl.DataFrame) -> Iterator[str]:
    """What a step of each arm spends its time on, mean over the seeds, and the buffer's size."""
    for arm in claim.arms:
        means = rows.filter(pl.col("arm") == arm).mean().row(0, named=True)
        spent = ", ".join(
            f"{word} {means[name]:.3f} s"
            for name, word in PHASES.items()
            if means[name] is not None
        )
        size = means["buffer_bytes"]
        held = f"; its buffer takes {size / 1e6:.3f} MB at the end" if size else ""
        if spent:
            yield f"{arm}, a step: {spent}{held}."


def collected_share(claim: Claim, frames: Frames) -> Finding:
    """Questions buffered or retired at the end, of all to train on."""
    values = _at_end(claim, frames, lambda end: end["buffer_questions"] + end["retired_questions"])
    return _over_seeds(values, [_by_seed(values, "{:.1f} %", 100)], 0.0, 1.0)


def retired_over_buffered(claim: Claim, frames: Frames) -> Finding:
    """Retired minus buffered questions at the end, of all to train on."""
    values = _at_end(claim, frames, lambda end: end["retired_questions"] - end["buffer_questions"])
    return _over_seeds(values, [_by_seed(values, "{:+.1f} %", 100)], -1.0, 1.0)


def late_entropy(run: pl.DataFrame) -> float | None:
    """Entropy of the fresh rollouts over the last quarter of a run's steps; None: not logged."""
    late = run.filter(pl.col("step") > (1 - LATE) * pl.col("step").max())
    return late["entropy"].mean()  # type: ignore[return-value]


def _late_entropy(run: pl.DataFrame) -> float:
    found = late_entropy(run)
    if found is None:
        raise NotTestableError("the log has no entropy of late steps")
    return found


def _at_end(claim: Claim, frames: Frames, count: Callable[[dict[str, int]], float]) -> np.ndarray:
    """A count at the last step of the claim's only arm, of the questions to train on, [S]."""

    def share(run: pl.DataFrame) -> float:
        end = run.sort("step").row(-1, named=True)
        needed = ("buffer_questions", "retired_questions", "train_questions")
        if any(end[name] is None for name in needed) or not end["train_questions"]:
            raise NotTestableError("the log has no counts of the buffer")
        return count(end) / end["train_questions"]

    return _by_arm(claim, answer_of(claim, frames), share)[0]


def _by_arm(
    claim: Claim, rows: pl.DataFrame, number: Callable[[pl.DataFrame], float]
) -> list[np.ndarray]:
    """The number of every run of the seeds that the claim's arms share, [S] an arm."""
    seeds = shared_seeds(claim, rows)
    return [
        np.array(
            [
                number(rows.filter((pl.col("arm") == arm) & (pl.col("seed") == seed)))
                for seed in seeds
            ]
        )
        for arm in claim.arms
    ]


def _over_seeds(values: np.ndarray, notes: list[str], least: float, greatest: float) -> Finding:
    if np.isnan(values).any():
        raise NotTestableError("the log of a run has no number there")
    return Finding(bootstrap_mean(values[:, None]), notes, least, greatest, by_question=False)


def _by_seed(values: np.ndarray, form: str, factor: float = 1) -> str:
    return f"By seed: {', '.join(form.format(factor * value) for value in values)}."


def _arms_line(claim: Claim, values: list[np.ndarray], form: str) -> str:
    arms = zip(two_arms(claim), values, strict=True)
    means = ", ".join(f"{arm} {form.format(part.mean())}" for arm, part in arms)
    return f"Mean over seeds: {means}."
