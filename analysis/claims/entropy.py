"""Tests of claims on what the entropy of a right answer tells: AUROC over seeds and questions."""

from collections.abc import Sequence

import polars as pl

from analysis.claims.finding import (
    MIN_SEEDS,
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    shared_seeds,
)
from analysis.claims.ledger import Claim
from analysis.separation import (
    AT_A_TIME,
    AT_K,
    AT_LENGTH,
    judged,
    point_separation,
    separation,
    share_with_partner,
    with_bands,
    with_partner,
)
from analysis.statistics import Bootstrap

SAYS_NOTHING = "0.5 says nothing, below 0.5: the other way"
CHANCE = 0.5


def entropy_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for a flawed chain; pairs share seed, k and window of steps."""
    rows = _validity_rows(claim, frames)
    made, notes = _separation(rows, "mean_entropy", "flawed", AT_K)
    by_level = _point(rows, "mean_entropy", "flawed", (*AT_K, "level"))
    notes += [
        _flawed(rows),
        f"With the number of steps of the question held fixed as well: {by_level}; response "
        f"length alone: {_point(rows, 'length', 'flawed', AT_K)} ({SAYS_NOTHING}).",
    ]
    return Finding(made, notes, least=0.0)


def entropy_auroc_at_equal_length(claim: Claim, frames: Frames) -> Finding:
    """The same, and pairs are as long to 5 %, so that length cannot pass for entropy."""
    rows = _validity_rows(claim, frames)
    made, notes = _separation(rows, "mean_entropy", "flawed", AT_LENGTH)
    return Finding(made, [*notes, _flawed(rows)], least=0.0)


def entropy_auroc_over_nll(claim: Claim, frames: Frames) -> Finding:
    """The same AUROC minus that of the mean negative log-probability, if both are above chance."""
    rows = _validity_rows(claim, frames, pl.col("nll").is_not_null())
    entropy, notes = _separation(rows, "mean_entropy", "flawed", AT_K)
    nll, _ = _separation(rows, "nll", "flawed", AT_K)
    shown = f"entropy {entropy.value:.3f}, negative log-probability {nll.value:.3f}"
    below = [made for made in (entropy, nll) if made.value < CHANCE]
    if below:
        which = "neither score ranks" if len(below) == 2 else "not both scores rank"
        raise NotTestableError(f"{which} flawed chains above valid ones ({shown})")
    made = entropy.minus(nll)
    return Finding(made, [_by_seed(made, "+"), f"AUROC: {shown}.", *notes[1:], _flawed(rows)])


def difficulty_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for an answer of difficulty `given.difficulty`, against medium ones."""
    other = str(claim.given["difficulty"])
    rows = _arm_rows(claim, frames, pl.col("difficulty").is_in([other, "medium"]))
    rows = rows.with_columns(other=pl.col("difficulty") == other)
    made, notes = _separation(rows, "mean_entropy", "other", AT_A_TIME)
    notes += [
        f"{rows.height} right answers, {rows['other'].sum()} of them {other} ({_part(rows)}).",
        f"Response length alone: {_point(rows, 'length', 'other', AT_A_TIME)} ({SAYS_NOTHING}).",
    ]
    return Finding(made, notes, least=0.0)


def shortcut_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for an answer that shows no steps; pairs share seed, k, window, length."""
    rows = with_bands(_arm_rows(claim, frames, pl.col("shortcut").is_not_null()))
    length = _point(rows, "length", "shortcut", AT_K)
    marked = int(rows["shortcut"].sum())
    if marked and with_partner(rows, "mean_entropy", "shortcut", AT_LENGTH).is_empty():
        raise NotTestableError(
            f"no marked answer ({marked} of {rows.height}) is as long as an unmarked one of its "
            f"stratum, so length explains it as well (AUROC of entropy "
            f"{_point(rows, 'mean_entropy', 'shortcut', AT_K)}, of length alone {length})"
        )
    made, notes = _separation(rows, "mean_entropy", "shortcut", AT_LENGTH)
    notes += [
        f"{rows.height} right answers, {marked} of them shortcuts by their text ({_part(rows)}).",
        _partners(rows, "shortcut"),
        f"Response length alone, at any length: {length}.",
    ]
    return Finding(made, notes, least=0.0)


def _arm_rows(claim: Claim, frames: Frames, *kept: pl.Expr) -> pl.DataFrame:
    arm = answer_of(claim, frames).filter(pl.col("arm") == claim.arms[0])
    shared_seeds(claim, arm)
    rows = arm.filter(*kept)
    if rows.is_empty():
        raise NotTestableError(f"none of the answers of `{claim.arms[0]}` is of the kind compared")
    shared_seeds(claim, rows)
    return rows


def _validity_rows(claim: Claim, frames: Frames, *kept: pl.Expr) -> pl.DataFrame:
    if _arm_rows(claim, frames)["chain_valid"].is_null().all():
        raise NotTestableError("no chain was checked: this task has no exact check of its steps")
    rows = _arm_rows(claim, frames, pl.col("chain_valid").is_not_null(), *kept)
    rows = with_bands(rows).with_columns(flawed=~pl.col("chain_valid"))
    if rows["flawed"].n_unique() < 2:
        missing = "valid" if rows["flawed"].all() else "flawed"
        raise NotTestableError(f"no right answer has a {missing} chain")
    return rows


def _separation(
    rows: pl.DataFrame, score: str, positive: str, within: Sequence[str]
) -> tuple[Bootstrap, list[str]]:
    """The AUROC over the seeds that have a pair, two or more, and what to say of the seeds."""
    paired = with_partner(rows, score, positive, within)
    seeds, without = (set(part["seed"]) for part in (paired, rows))
    without -= seeds
    if len(seeds) < MIN_SEEDS:
        raise NotTestableError(
            f"it needs {MIN_SEEDS} seeds or more in which two answers to compare share a stratum, "
            f"this study has {len(seeds)}"
        )
    made = separation(rows, score, positive, within)
    if made is None:
        raise NotTestableError("there are too few questions to draw from")
    notes = [_by_seed(made)]
    if without:
        left = ", ".join(map(str, sorted(without)))
        notes.append(f"Left out, for they have no pair to compare: seeds {left}.")
    return made, notes


def _by_seed(made: Bootstrap, sign: str = "") -> str:
    return f"By seed: {', '.join(f'{value:{sign}.3f}' for value in made.by_seed)}."


def _point(rows: pl.DataFrame, score: str, positive: str, within: Sequence[str]) -> str:
    """The AUROC without an interval."""
    found = point_separation(rows, score, positive, within)
    return "unknown, for there is no pair" if found is None else f"{found:.3f}"


def _flawed(rows: pl.DataFrame) -> str:
    return (
        f"{rows.height} right answers, {rows['flawed'].sum()} of them flawed, {judged(rows)} "
        f"({_part(rows)}). {_partners(rows, 'flawed')}"
    )


def _partners(rows: pl.DataFrame, positive: str) -> str:
    shares = [100 * share_with_partner(rows, positive, within) for within in (AT_K, AT_LENGTH)]
    return (
        f"{shares[0]:.0f} % of the {positive} ones have another to be compared with, "
        f"{shares[1]:.0f} % one of equal length."
    )


def _part(rows: pl.DataFrame) -> str:
    one_in = rows["one_in"][0]
    return "all there are" if one_in == 1 else f"one in {one_in} of all, by hash of the id"
