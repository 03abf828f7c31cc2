"""Ratios of many cells with intervals over seeds and questions, all from the same draws.

A cell is for example an arm and a bucket. Its ratio is the sum of one column over the sum of
another, over the rows of one seed, averaged over seeds. Rows of one question stay together in
every draw, for they are not independent.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from analysis.arms import BASE, arm_order
from analysis.statistics import Bootstrap, Floats, draw_weights, widen

REPLICATES = 2_000
SHOWN = 9  # arms that a figure and its sentences show; the query has all
_CHUNK = 2_000_000  # weights held at once, to bound memory

Cell = tuple[Any, ...]


def clustered_ratios(
    rows: pl.DataFrame,
    cell: Sequence[str],
    top: str,
    bottom: str,
    replicates: int = REPLICATES,
    seed: int = 0,
) -> dict[Cell, Bootstrap]:
    """Sum of `top` over sum of `bottom`, by cell: the mean over seeds of each seed's ratio.

    rows: the columns of `cell`, `seed`, `question`, `top` and `bottom` (0 or more). All cells get
    the same draws of questions, and those with as many seeds the same draws of seeds: `minus` of
    two cells with the same seeds is a paired difference. Rows without a bottom do not count, nor
    does a cell whose draws mostly hold nothing to take a ratio of. Ours; the bootstrap is that of
    `analysis.statistics`.
    """
    rows = (
        rows.filter(pl.col(bottom) > 0)
        .group_by(*cell, "seed", "question")
        .agg(pl.col(top).sum(), pl.col(bottom).sum())
    )
    if rows.is_empty():
        return {}
    lines = rows.select(*cell, "seed").unique().sort(*cell, "seed")
    questions = rows.select("question").unique().sort("question")
    placed = rows.join(lines.with_row_index("line"), on=[*cell, "seed"], nulls_equal=True).join(
        questions.with_row_index("at"), on="question", nulls_equal=True
    )
    tops, bottoms = (np.zeros((lines.height, questions.height)) for _ in range(2))
    where = placed["line"].to_numpy(), placed["at"].to_numpy()
    tops[where], bottoms[where] = placed[top].to_numpy(), placed[bottom].to_numpy()
    on_data = tops.sum(axis=1) / bottoms.sum(axis=1)
    drawn = _draw(tops, bottoms, replicates, seed)
    made: dict[Cell, Bootstrap] = {}
    for key, at in _lines_of_cells(lines, cell):
        rng = np.random.default_rng([seed, len(at)])  # apart from the draws of questions
        weights = widen(draw_weights(len(at), replicates, rng))
        mean = (drawn[:, at] * weights).mean(axis=1)
        if np.isnan(mean).mean() <= 0.5:
            held = int((bottoms[at] > 0).any(axis=0).sum())
            made[key] = Bootstrap(on_data[at], drawn[:, at], mean, held)
    return made


def paired_difference(
    rows: pl.DataFrame, column: str, one: Any, other: Any, top: str, bottom: str
) -> Bootstrap | None:
    """The ratio where `column` is `one`, minus that where it is `other`; None if either is not.

    Paired: the same draws for both, over the seeds that have both.
    """
    rows = rows.filter((pl.col(bottom) > 0) & pl.col(column).is_in([one, other]))
    rows = rows.filter(pl.col(column).n_unique().over("seed") == 2)
    made = clustered_ratios(rows, (column,), top, bottom)
    if len(made) < 2:
        return None
    return made[one,].minus(made[other,])


def _draw(tops: Floats, bottoms: Floats, replicates: int, seed: int) -> Floats:
    """The ratio [replicates, lines] under draws of the questions; NaN where none was drawn."""
    rng = np.random.default_rng(seed)
    questions = tops.shape[1]
    size = max(1, _CHUNK // questions)
    parts = []
    for start in range(0, replicates, size):
        weights = draw_weights(questions, min(size, replicates - start), rng)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append((weights @ tops.T) / (weights @ bottoms.T))
    return np.concatenate(parts)


def _lines_of_cells(lines: pl.DataFrame, cell: Sequence[str]) -> Iterator[tuple[Cell, list[int]]]:
    grouped = lines.with_row_index("line").group_by(*cell, maintain_order=True)
    for key, part in grouped.agg(pl.col("line")).select(pl.struct(cell), "line").iter_rows():
        yield tuple(key.values()), part


def first_arms(arms: Sequence[str]) -> list[str]:
    """The arms that a figure shows, in the common order: the base model aside, at most `SHOWN`."""
    return [arm for arm in arm_order(list(arms)) if arm != BASE][:SHOWN]


def further(arms: Sequence[str], query: str) -> list[str]:
    """The sentence about the arms that are left out; none if all are there."""
    left = len(set(arms) - {BASE}) - SHOWN
    return [f"{left} more arms: see query `{query}`."] if left > 0 else []


def drawn_over(seeds: int, questions: int) -> str:
    """Of what a 95 % interval is one."""
    if seeds > 1:
        return f"95 % over {seeds} seeds and {questions} questions"
    return f"95 % over {questions} questions only, for there is no second seed"
