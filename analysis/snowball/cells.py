"""Ratios of sums over questions, one a seed: what every part of the detector estimates.

A slope, a matched difference and an effect a replay are all sum(top) / sum(bottom) over the
questions of a seed. Linearised at its own value (delta method), such a ratio is a mean over
questions, so that `analysis.statistics.bootstrap_mean` gives interval, p and power by seed and
question, and arms are subtracted question by question.
"""

from collections.abc import Sequence

import numpy as np
import polars as pl

from analysis.statistics import Floats


class NotHereError(Exception):
    """The lake lacks what a part needs; the message says what."""


SEED = pl.coalesce(pl.col("seed").cast(pl.String), pl.col("run"))  # an import has no seed


def by_cell(rows: pl.DataFrame, top: pl.Expr, bottom: pl.Expr) -> pl.DataFrame:
    """Sums of `top` and `bottom` by seed and question. rows: with columns seed, run, question."""
    return rows.group_by(SEED.alias("seed"), "question").agg(top=top.sum(), bottom=bottom.sum())


def seeds_of(cells: pl.DataFrame) -> set[str]:
    """The seeds whose ratio is defined."""
    sums = cells.group_by("seed").agg(pl.col("bottom").sum())
    return set(sums.filter(pl.col("bottom") > 0)["seed"])


def ratios(cells: pl.DataFrame, seeds: Sequence[str], questions: Sequence[str]) -> Floats:
    """Values [S, Q]; the mean over questions is sum(top) / sum(bottom) of the seed.

    value = ratio + (top - ratio * bottom) / mean(bottom); the ratio itself where a seed has
    nothing of a question. cells: see `by_cell`; seeds: some of `seeds_of`.
    """
    rows = cells.filter(pl.col("seed").is_in(seeds) & pl.col("question").is_in(questions))
    at = (
        np.searchsorted(np.array(seeds), rows["seed"].to_numpy()),
        np.searchsorted(np.array(questions), rows["question"].to_numpy()),
    )
    top, bottom = np.zeros((2, len(seeds), len(questions)))
    top[at], bottom[at] = rows["top"].to_numpy(), rows["bottom"].to_numpy()
    ratio = top.sum(axis=1, keepdims=True) / bottom.sum(axis=1, keepdims=True)
    return ratio + (top - ratio * bottom) / bottom.mean(axis=1, keepdims=True)
