"""Tests of claims on what the entropy of a right answer tells: AUROC, bootstrapped by question."""

import numpy as np
import polars as pl

from analysis.claims.finding import Finding, Frames, NotTestableError, answer_of, shared_seeds
from analysis.claims.ledger import Claim
from analysis.statistics import Bootstrap, auroc, bootstrap_auroc

SAYS_NOTHING = "0.5 says nothing, below 0.5: the other way"


def entropy_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for a flawed chain; pairs share seed, k and window of steps."""
    rows = _validity_rows(claim, frames)
    made = _separation(rows, "mean_entropy", "flawed", "bucket")
    by_level = _within(rows, "mean_entropy", "flawed", "bucket", "level")
    length = _within(rows, "length", "flawed", "bucket")
    notes = [
        _by_seed(made),
        f"{rows.height} right answers, {rows['flawed'].sum()} of them flawed ({_part(rows)}).",
        f"With the number of steps of the question held fixed as well: {by_level:.3f}; response "
        f"length alone: {length:.3f} ({SAYS_NOTHING}).",
    ]
    return Finding(made, notes, least=0.0)


def entropy_auroc_over_nll(claim: Claim, frames: Frames) -> Finding:
    """The same AUROC minus that of the mean negative log-probability."""
    rows = _validity_rows(claim, frames, pl.col("nll").is_not_null())
    entropy, nll = (
        _separation(rows, score, "flawed", "bucket") for score in ("mean_entropy", "nll")
    )
    note = f"Entropy {entropy.value:.3f}, negative log-probability {nll.value:.3f}."
    return Finding(entropy.minus(nll), [note])


def difficulty_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for an answer of difficulty `given.difficulty`, against medium ones."""
    other = str(claim.given["difficulty"])
    rows = _arm_rows(claim, frames, pl.col("difficulty").is_in([other, "medium"]))
    rows = rows.with_columns(other=pl.col("difficulty") == other)
    made = _separation(rows, "mean_entropy", "other")
    length = _within(rows, "length", "other")
    notes = [
        _by_seed(made),
        f"{rows.height} right answers, {rows['other'].sum()} of them {other} ({_part(rows)}).",
        f"Response length alone: {length:.3f} ({SAYS_NOTHING}).",
    ]
    return Finding(made, notes, least=0.0)


def shortcut_auroc(claim: Claim, frames: Frames) -> Finding:
    """AUROC of entropy for an answer that shows no steps; pairs share seed, k and window."""
    rows = _arm_rows(claim, frames, pl.col("shortcut").is_not_null())
    made = _separation(rows, "mean_entropy", "shortcut", "bucket")
    length = _within(rows, "length", "shortcut", "bucket")
    notes = [
        _by_seed(made),
        f"{rows.height} right answers, {rows['shortcut'].sum()} of them shortcuts ({_part(rows)}).",
        f"Response length alone: {length:.3f}.",
    ]
    return Finding(made, notes, least=0.0)


def _arm_rows(claim: Claim, frames: Frames, *kept: pl.Expr) -> pl.DataFrame:
    rows = answer_of(claim, frames).filter(pl.col("arm") == claim.arms[0], *kept)
    shared_seeds(claim, rows)
    return rows


def _validity_rows(claim: Claim, frames: Frames, *kept: pl.Expr) -> pl.DataFrame:
    rows = _arm_rows(claim, frames, pl.col("chain_valid").is_not_null(), *kept)
    rows = rows.with_columns(flawed=~pl.col("chain_valid"))
    if rows["flawed"].n_unique() < 2:
        missing = "valid" if rows["flawed"].all() else "flawed"
        raise NotTestableError(f"no right answer has a {missing} chain")
    return rows


def _strata(rows: pl.DataFrame, *columns: str) -> np.ndarray:
    """Pairs share the window of steps, so that training time cannot pass for separation."""
    return rows.select("window_start", *columns).hash_rows().to_numpy()


def _separation(rows: pl.DataFrame, score: str, positive: str, *within: str) -> Bootstrap:
    try:
        return bootstrap_auroc(
            rows[score].to_numpy(),
            rows[positive].to_numpy(),
            questions=rows["question"].to_numpy(),
            seeds=rows["seed"].to_numpy(),
            strata=_strata(rows, *within),
        )
    except ValueError as error:
        raise NotTestableError(str(error)) from error


def _within(rows: pl.DataFrame, score: str, positive: str, *within: str) -> float:
    """The AUROC over all pairs of one seed and stratum, without an interval."""
    return auroc(rows[score].to_numpy(), rows[positive].to_numpy(), _strata(rows, "seed", *within))


def _by_seed(made: Bootstrap) -> str:
    return f"By seed: {', '.join(f'{value:.3f}' for value in made.by_seed)}."


def _part(rows: pl.DataFrame) -> str:
    one_in = rows["one_in"][0]
    return "all there are" if one_in == 1 else f"one in {one_in} of all, by hash of the id"
