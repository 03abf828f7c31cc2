"""What each token counted in the update: its importance ratio, the weight made of it, the push.

The log holds a token's log-probabilities, and of ratio and weight only mean, least and greatest a
trajectory. Both are computed here again from the run's own settings, by paper equations 4 and 5 as
`surrogate` of `exgrpo/objective.py` has them, and held against those logged numbers: what does not
agree with them is not shown.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import duckdb
import numpy as np
import polars as pl

from analysis.errors import UserError
from analysis.queries import explain

NEAR = 1e-3  # relative; the log's log-probabilities are float32

NO_SETTINGS = (
    "The catalog does not hold the settings of this run's objective, as for an import: without "
    "them the weights of its tokens cannot be computed."
)
NO_GRADIENT = (
    "This trajectory had no gradient in the update (its advantage is 0, or it was left out), so "
    "that its tokens have no weight."
)
NOT_LOGGED = (
    "The log holds no log-probabilities of this trajectory's tokens in the update: a run keeps "
    "them for a share of its trajectories (setting `log.token_floats_share`)."
)
NOT_AGREEING = (
    "The weights computed from the log's token log-probabilities do not agree with the logged "
    "mean, least and greatest, so they are not shown."
)
OTHER_DENOMINATOR = (
    "This arm divides by the policy before the update (`objective.denominator: current`), whose "
    "token log-probabilities the log does not hold: the weights cannot be computed."
)


@dataclass(frozen=True)
class Objective:
    """The settings that make a weight of a ratio; see `exgrpo.settings.Objective`."""

    shaping: str
    beta: float
    constant: float
    clip_before_start: str
    clip_after_start: str
    clip_low: float
    clip_high: float
    denominator: str


_KINDS: dict[str, type] = {field.name: field.type for field in fields(Objective)}  # type: ignore[misc]


@dataclass(frozen=True)
class Weighed:
    """Tokens with three more columns, or with nulls in them and a sentence why.

    ratio: policy / behaviour policy. weight: the factor of the advantage, the ratio clipped or
    shaped. push: advantage x weight, and 0 where the clip removed the gradient. `clipped` says so.
    """

    tokens: pl.DataFrame
    missing: str | None = None


def objective_of(connection: duckdb.DuckDBPyConnection, run: str) -> Objective | None:
    """The objective of a run, from the settings in the catalog; None where they do not hold it."""
    try:
        with connection.cursor() as cursor:
            sql = "SELECT settings FROM runs WHERE run = $run"
            found = cursor.execute(sql, {"run": run}).fetchone()
    except duckdb.Error as error:
        raise UserError(f"runs: {explain(error)}") from error
    return read_objective(found[0] if found else None)


def read_objective(settings: str | None) -> Objective | None:
    """The objective in a run's settings as JSON; None where it is not whole."""
    try:
        held = json.loads(settings or "{}")["objective"]
        return Objective(**{name: kind(held[name]) for name, kind in _KINDS.items()})
    except (ValueError, TypeError, LookupError):
        return None


def weigh(tokens: pl.DataFrame, row: Mapping[str, Any], objective: Objective | None) -> Weighed:
    """The tokens of a trajectory (`read_tokens`) with ratio, weight, clipped and push.

    `row` is its row of `trajectories`. Whether replay had started, and with it which clip was in
    force, is not logged for every arm: both are tried, and the logged numbers decide.
    """
    if objective is None:
        return _without(tokens, NO_SETTINGS)
    if row["weight_mean"] is None or row["advantage"] is None:
        return _without(tokens, NO_GRADIENT)
    if not tokens.height or tokens["logprob"].has_nulls():
        return _without(tokens, NOT_LOGGED)
    log_ratio = tokens["logprob"].cast(pl.Float64) - tokens["behaviour_logprob"]
    ratio = np.exp(log_ratio.to_numpy())
    for weight, clipped in _candidates(ratio, row, objective):
        shares = _near(float(clipped.mean()), row["clipped_share"])
        if _agrees(row, "ratio", ratio) and _agrees(row, "weight", weight) and shares:
            return Weighed(
                tokens.with_columns(
                    ratio=pl.Series(ratio),
                    weight=pl.Series(weight),
                    clipped=pl.Series(clipped),
                    push=pl.Series(np.where(clipped, 0.0, weight * row["advantage"])),
                )
            )
    other = objective.denominator == "current" and row["replayed"]
    return _without(tokens, OTHER_DENOMINATOR if other else NOT_AGREEING)


def _candidates(
    ratio: np.ndarray, row: Mapping[str, Any], objective: Objective
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Weight and clipped [tokens] under the clip after the start of replay, and the one before."""
    for clip in dict.fromkeys((objective.clip_after_start, objective.clip_before_start)):
        yield weights(ratio, row["advantage"], row["replayed"], clip, objective)


def weights(
    ratio: np.ndarray, advantage: float, replayed: bool, clip: str, objective: Objective
) -> tuple[np.ndarray, np.ndarray]:
    """Weight and whether the clip removed the gradient, [tokens] each, as `surrogate` has them."""
    bounded = ratio.clip(1 - objective.clip_low, 1 + objective.clip_high)
    factor, bounded_factor = (
        shaped(each, objective) if replayed else each for each in (ratio, bounded)
    )
    if clip == "none" or (clip == "fresh" and replayed):
        return factor, np.zeros(ratio.shape, dtype=bool)
    clipped = bounded_factor * advantage < factor * advantage
    return np.where(clipped, bounded_factor, factor), clipped


def shaped(ratio: np.ndarray, objective: Objective) -> np.ndarray:
    """f(w) of a replayed token, as `shape` of `exgrpo/objective.py` has it."""
    match objective.shaping:
        case "ratio":
            return ratio / (ratio + objective.beta)
        case "constant":
            return objective.constant * ratio
        case _:
            return ratio


def _agrees(row: Mapping[str, Any], name: str, values: np.ndarray) -> bool:
    """Mean, least and greatest are the logged ones."""
    computed = {"mean": values.mean(), "min": values.min(), "max": values.max()}
    return all(_near(float(each), row[f"{name}_{kind}"]) for kind, each in computed.items())


def _near(computed: float, logged: float | None) -> bool:
    """Equal within float32; what was not logged cannot disagree."""
    return logged is None or math.isclose(computed, logged, rel_tol=NEAR)


def _without(tokens: pl.DataFrame, why: str) -> Weighed:
    nothing = pl.lit(None, dtype=pl.Float64)
    return Weighed(
        tokens.with_columns(
            ratio=(pl.col("logprob") - pl.col("behaviour_logprob")).exp(),
            weight=nothing,
            clipped=pl.lit(None, dtype=pl.Boolean),
            push=nothing,
        ),
        why,
    )
