"""What a test of a claim comes to before its verdict, and what every test asks of its data."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import polars as pl

from analysis.claims.ledger import Claim
from analysis.statistics import Bootstrap, Floats

Frames = Mapping[str, pl.DataFrame]
MIN_SEEDS = 2
_NO_SPREAD = 1e-12  # a standard error that is nothing but rounding


@dataclass(frozen=True)
class Finding:
    """A tested claim: the estimate, what to say beside it, and the values that are possible.

    pairs: differences [S, Q] by seed and question, for the permutation test; None where the
    estimate is none of such. by_question: questions were drawn too, not seeds alone.
    """

    made: Bootstrap
    notes: list[str] = field(default_factory=list)
    least: float = -1.0
    greatest: float = 1.0
    pairs: Floats | None = None
    by_question: bool = True


class NotTestableError(Exception):
    """This study lacks what the claim needs; the message says what."""


def varies(made: Bootstrap) -> bool:
    """Whether seeds or questions differ at all; else nothing says how far a new study could lie."""
    return made.se > _NO_SPREAD


def answer_of(claim: Claim, frames: Frames) -> pl.DataFrame:
    """The answer to the claim's query. NotTestableError when there is none."""
    return frame_of(claim.query, frames)


def frame_of(name: str, frames: Frames) -> pl.DataFrame:
    """An answer by its name. NotTestableError when there is none."""
    if name not in frames:
        raise NotTestableError("no study is asked")
    return frames[name]


def two_arms(claim: Claim) -> tuple[str, str]:
    if len(claim.arms) != 2:
        raise ValueError(f"claim {claim.id}: test {claim.test} compares two arms")
    return claim.arms[0], claim.arms[1]


def shared_seeds(claim: Claim, rows: pl.DataFrame) -> list[int]:
    """The seeds that every arm of the claim has; NotTestableError when they are too few."""
    found = []
    for arm in claim.arms:
        seeds = set(rows.filter(pl.col("arm") == arm)["seed"].drop_nulls())
        if not seeds:
            raise NotTestableError(f"the study has no rows of arm `{arm}`")
        found.append(seeds)
    shared = set.intersection(*found)
    if len(shared) < MIN_SEEDS:
        raise NotTestableError(
            f"it needs {MIN_SEEDS} seeds or more in {' and '.join(claim.arms)}, "
            f"this study has {len(shared)}"
        )
    return sorted(shared)
