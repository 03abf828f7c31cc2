"""Tests of claims on the course of training: one number a run, so Student's t over seeds."""

import math
from collections.abc import Callable

import numpy as np
import polars as pl

from analysis.claims.finding import (
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    shared_seeds,
    two_arms,
)
from analysis.claims.ledger import Claim
from analysis.claims.show import show
from analysis.statistics import bootstrap_mean

LATE = 0.25  # the last quarter of the steps


def late_entropy_difference(claim: Claim, frames: Frames) -> Finding:
    """Entropy of the fresh rollouts over the last quarter of training, first arm minus second."""
    values = _by_arm(claim, answer_of(claim, frames), _late_entropy)
    notes = [_arms_line(claim, values, "{:.3f} nat/token")]
    return _over_seeds(claim, values[0] - values[1], notes, -math.inf, math.inf)


def step_time_ratio(claim: Claim, frames: Frames) -> Finding:
    """Logarithm of the time a step of the first arm over that of the second."""
    rows = answer_of(claim, frames).filter((pl.col("steps") > 0) & (pl.col("seconds") > 0))
    values = _by_arm(claim, rows, lambda run: float(run["seconds"][0] / run["steps"][0]))
    ratio = np.log(values[0] / values[1])
    percent = 100 * (math.exp(ratio.mean()) - 1)
    notes = [
        f"That is {percent:+.1f} % a step.",
        _arms_line(claim, values, "{:.3f} s a step"),
        "Time on a machine that others use is noisy: runs of one seed need not have met the same.",
    ]
    return _over_seeds(claim, ratio, notes, -math.inf, math.inf)


def collected_share(claim: Claim, frames: Frames) -> Finding:
    """Questions buffered or retired at the end, of all to train on."""
    values = _at_end(claim, frames, lambda end: end["buffer_questions"] + end["retired_questions"])
    return _over_seeds(claim, values, [_by_seed(values, "{:.1f} %", 100)], 0.0, 1.0)


def retired_over_buffered(claim: Claim, frames: Frames) -> Finding:
    """Retired minus buffered questions at the end, of all to train on."""
    values = _at_end(claim, frames, lambda end: end["retired_questions"] - end["buffer_questions"])
    return _over_seeds(claim, values, [_by_seed(values, "{:+.1f} %", 100)], -1.0, 1.0)


def _late_entropy(run: pl.DataFrame) -> float:
    late = run.filter(pl.col("step") > (1 - LATE) * int(run["step"].max()))  # type: ignore[arg-type]
    found = late["entropy"].mean()
    if found is None:
        raise NotTestableError("the log has no entropy of late steps")
    return float(found)  # type: ignore[arg-type]


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


def _over_seeds(
    claim: Claim, values: np.ndarray, notes: list[str], least: float, greatest: float
) -> Finding:
    if len(set(values.tolist())) == 1:
        raise NotTestableError(
            f"every seed comes to {show(float(values[0]), claim.unit)}, so nothing says how far "
            f"another could lie from it"
        )
    made = bootstrap_mean(values[:, None])
    return Finding(made, notes, least, greatest, by_question=False)


def _by_seed(values: np.ndarray, form: str, factor: float = 1) -> str:
    return f"By seed: {', '.join(form.format(factor * value) for value in values)}."


def _arms_line(claim: Claim, values: list[np.ndarray], form: str) -> str:
    arms = zip(two_arms(claim), values, strict=True)
    means = ", ".join(f"{arm} {form.format(part.mean())}" for arm, part in arms)
    return f"Mean over seeds: {means}."
