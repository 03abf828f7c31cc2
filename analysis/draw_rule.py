"""Do questions come from the buckets as the arm's own rule says? Expected against observed draws.

The rule is that of the paper's Algorithm 2, known from the settings of each run. It is played many
times over the logged bucket sizes, which gives the expectation, its interval, and how often a
faithful run would stray as far as the observed one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import polars as pl

from analysis.queries import answer
from analysis.statistics import Floats

PLAYS = 250
INTERVAL = 0.95


@dataclass(frozen=True)
class ArmDraws:
    """Observed and expected draws of one arm, all its runs together.

    frame: a row a bucket: bucket, drawn, expected, low, high (the 95 % interval of a faithful run).
    p: how often a faithful run strays as far (chi-square distance, simulated). runs, steps: that
    count. without: runs whose rule or bucket sizes are not known. replays: whether a trajectory
    of a drawn question is replayed, too.
    """

    arm: str
    frame: pl.DataFrame
    p: float
    runs: int
    steps: int
    without: int
    replays: bool


def arm_draws(
    connection: duckdb.DuckDBPyConnection, study: str, runs: tuple[str, ...]
) -> list[ArmDraws]:
    """The arms of these runs that draw questions. Without a known rule: an empty frame."""
    asked = {"study": study, "run": list(runs)}
    draws = answer(connection, "buffer_draws", **asked)
    rules = {row["run"]: row for row in answer(connection, "buffer_rules", **asked).to_dicts()}
    return [
        _of_arm(str(arm), mine, rules)
        for (arm,), mine in draws.group_by("arm", maintain_order=True)
    ]


def _of_arm(arm: str, draws: pl.DataFrame, rules: dict[str, dict[str, Any]]) -> ArmDraws:
    runs = draws["run"].unique(maintain_order=True).to_list()
    known = [run for run in runs if run in rules and _fits(draws, run, rules[run])]
    buckets = draws["bucket"].unique().sort().to_list()
    observed, played = np.zeros(len(buckets)), np.zeros((PLAYS, len(buckets)))
    steps = 0
    for number, run in enumerate(known):
        sizes, drawn = _tables(draws.filter(pl.col("run") == run))
        weights = bucket_weights(**{name: rules[run][name] for name in _RULE})
        here = slice(sizes.shape[1])  # runs of another K have fewer buckets
        played[:, here] += play(sizes, drawn.sum(axis=1), weights, PLAYS, seed=number)
        observed[here] += drawn.sum(axis=0)
        steps += len(sizes)
    if not known:
        empty = pl.DataFrame(
            schema={"bucket": pl.Int64, **dict.fromkeys(_NUMBERS, pl.Float64)},
        )
        return ArmDraws(arm, empty, 1.0, 0, 0, len(runs), False)
    return ArmDraws(
        arm,
        _frame(buckets, observed, played),
        strayed(observed, played),
        len(known),
        steps,
        len(runs) - len(known),
        any(rules[run]["replay"] == "trajectory" for run in known),
    )


_NUMBERS = ("drawn", "expected", "low", "high")
_RULE = ("rule", "group_size", "mu", "sigma", "sigma_unit")
_RULES = ("gaussian", "linear", "sqrt", "uniform", "questions")


def _fits(draws: pl.DataFrame, run: str, rule: dict[str, Any]) -> bool:
    """Whether it is a rule that is known here, about all the buckets of the log."""
    return (
        rule["rule"] in _RULES
        and draws.filter(pl.col("run") == run)["bucket"].max() == (rule["group_size"] or 0) - 1
    )


def _frame(buckets: Sequence[int], observed: Floats, played: Floats) -> pl.DataFrame:
    tail = (1 - INTERVAL) / 2
    low, high = np.quantile(played, [tail, 1 - tail], axis=0)
    return pl.DataFrame(
        {
            "bucket": buckets,
            "drawn": observed,
            "expected": played.mean(axis=0),
            "low": low,
            "high": high,
        }
    )


def _tables(rows: pl.DataFrame) -> tuple[Floats, Floats]:
    """Questions in, and drawn from, each bucket: both [steps, buckets]."""
    shape = (rows["step"].n_unique(), -1)  # the query's rows: step by step, bucket by bucket
    questions, drawn = rows["questions"].to_numpy(), rows["drawn"].to_numpy()
    return questions.reshape(shape), drawn.reshape(shape)


def bucket_weights(
    rule: str, group_size: int, mu: float, sigma: float, sigma_unit: str
) -> Floats | None:
    """Weight of bucket 1 .. K-1, [K-1]; None where every question is as likely as another.

    Raises ValueError for a rule that is not known.
    """
    counts = np.arange(1, group_size)
    match rule:
        case "gaussian":
            width = sigma * (1 if sigma_unit == "count" else group_size)
            return np.asarray(np.exp(-0.5 * ((counts - mu * group_size) / width) ** 2))
        case "linear":
            return counts / group_size
        case "sqrt":
            return np.sqrt(counts / group_size)
        case "uniform":
            return np.ones(group_size - 1)
        case "questions":
            return None
    raise ValueError(f"no rule {rule!r}")


def play(
    sizes: Floats, counts: Floats, weights: Floats | None, plays: int, seed: int = 0
) -> Floats:
    """Draw counts[t] questions from buckets of sizes[t], `plays` times: totals [plays, buckets].

    sizes: [steps, buckets], counts: [steps]. A bucket gives no more than it holds; what is left
    is drawn again among those with room, and where no weight has room, every question is as likely.
    """
    generator = np.random.default_rng(seed)
    total = np.zeros((plays, sizes.shape[1]))
    for inside, count in zip(sizes.astype(int), counts.astype(int), strict=True):
        if able := min(count, int(inside.sum())):
            total += _one_step(inside, able, weights, plays, generator)
    return total


def _one_step(
    sizes: Floats, count: int, weights: Floats | None, plays: int, generator: np.random.Generator
) -> Floats:
    """Draws of one step, [plays, buckets].

    Draws by weight, where a full bucket's are drawn again, are the first arrivals of as many
    Poisson processes, each of which ends when its bucket is empty.
    """
    weight = np.zeros(len(sizes)) if weights is None else weights
    with np.errstate(divide="ignore"):
        gaps = generator.standard_exponential((plays, len(sizes), count)) / weight[:, None]
    arrivals = gaps.cumsum(axis=2)
    arrivals[:, np.arange(count) >= sizes[:, None]] = np.inf
    last = np.partition(arrivals.reshape(plays, -1), count - 1, axis=1)[:, count - 1]
    taken = (np.isfinite(arrivals) & (arrivals <= last[:, None, None])).sum(axis=2)
    left = count - taken.sum(axis=1)
    for each in np.flatnonzero(left):  # no bucket of any weight has room
        taken[each] += generator.multivariate_hypergeometric(sizes - taken[each], left[each])
    return taken


def strayed(observed: Floats, played: Floats) -> float:
    """How often a play is as far from the expectation as the observed draws, of plays + 1."""
    expected = np.maximum(played.mean(axis=0), 1e-9)
    far = ((played - expected) ** 2 / expected).sum(axis=1)
    here = ((observed - expected) ** 2 / expected).sum()
    return float((1 + (far >= here - 1e-9).sum()) / (len(played) + 1))
