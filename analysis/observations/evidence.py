"""What the observations on entropy share: the arm looked at, estimates, and how they are drawn.

All intervals are 95 %, over seeds and questions, and not adjusted for the number of comparisons.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import polars as pl

from analysis.arms import arm_order
from analysis.behind import Behind, rollouts
from analysis.drawing import StudyFacts
from analysis.observations.clustered import Cell, clustered_ratios
from analysis.observations.marks import add_bars, bounds, estimated
from analysis.statistics import Bootstrap
from analysis.theme import MUTED, Look

UNBOUNDED = (-np.inf, np.inf)
DIFFICULTIES = ("hard", "medium", "easy")


def arm_of(arms: Iterable[str], *preferred: str) -> str | None:
    """The arm to look at: the first preferred one that is there, else the first there is."""
    there = arm_order(list(arms))
    return next((arm for arm in (*preferred, *there) if arm in there), None)


def differences(
    rows: pl.DataFrame, cell: Sequence[str], side: str, top: str, bottom: str
) -> dict[Cell, Bootstrap]:
    """By cell, the ratio of sums (`clustered_ratios`) where `side` is true minus where it is not.

    Over the seeds that have both sides in the cell.
    """
    both = pl.col(side).any() & (~pl.col(side)).any()
    rows = rows.filter(pl.col(bottom) > 0).filter(both.over(*cell, "seed"))
    made = clustered_ratios(rows, (*cell, side), top, bottom)
    return {
        at[:-1]: value.minus(made[*at[:-1], False])
        for at, value in made.items()
        if at[-1] and (*at[:-1], False) in made
    }


def said(made: Bootstrap | None) -> str:
    """An AUROC as `0.612 [0.580, 0.644]`."""
    if made is None:
        return "not known (no pair)"
    return f"{made.value:.3f}{bounds(made, (0, 1), '.3f')}"


def said_change(made: Bootstrap | None, places: int = 3) -> str:
    """A difference as `+0.012 [-0.003, +0.027]`."""
    if made is None:
        return "not known"
    return f"{made.value:+.{places}f}{bounds(made, UNBOUNDED, f'+.{places}f')}"


def spread(values: Mapping[str, float], places: int, unit: str = "") -> str:
    """The least and the greatest value, with what has them: `from 0.612 (a) to 0.701 (b)`."""
    ends = sorted(values, key=values.__getitem__)
    low, high = (f"{values[at]:.{places}f}{unit} ({at})" for at in (ends[0], ends[-1]))
    return low if len(values) == 1 else f"from {low} to {high}"


def counted_seeds(rows: pl.DataFrame) -> int:
    """How many seeds the rows name; 0 for an import."""
    return rows["seed"].drop_nulls().n_unique()


def sample(rows: pl.DataFrame) -> str:
    """Which rows of `entropy_validity_rows` these are: how many seeds and questions, what part."""
    seeds, one_in = counted_seeds(rows), rows["one_in"][0]
    part = "" if one_in == 1 else f", one in {one_in} by hash"
    return f"seeds {seeds}, questions {rows['question'].n_unique()}{part}"


def how_sure(rows: pl.DataFrame) -> str:
    """Over what the intervals of the sentences are."""
    seeds = counted_seeds(rows)
    over = f"{seeds} seeds and their questions"
    if seeds < 2:
        over = f"questions only, for there is {'one seed' if seeds else 'no seed'}"
    return f"Intervals: 95 % over {over}; not adjusted for the number of comparisons."


def bar_meaning(rows: pl.DataFrame) -> str:
    """What the bars of a figure are, for its subtitle."""
    over = "seeds and questions" if counted_seeds(rows) > 1 else "questions only"
    return f"bar: 95 % interval over {over}, not adjusted"


def subtitle(plot: go.Figure, facts: StudyFacts, meaning: str) -> go.Figure:
    """Give a figure of several panels the subtitle that `drawing.start` gives one."""
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), margin_t=120)
    return plot


def add_estimates(
    plot: go.Figure,
    name: str,
    estimates: Sequence[tuple[float | str, Bootstrap | None]],
    colour: str,
    symbol: str,
    row: int = 1,
    col: int = 1,
    horizontal: bool = False,
    factor: float = 1.0,
    clip: tuple[float, float] = UNBOUNDED,
    *,
    behind: Sequence[Behind],
) -> None:
    """Dots with their intervals: at each place an estimate, times `factor`; None is left out.

    A name is in the legend once, however many panels it is drawn in. behind: the rows behind each
    estimate, those that are None included.
    """
    known = [(at, made.scaled(factor)) for at, made in estimates if made is not None]
    rows = [each for each, (_, made) in zip(behind, estimates, strict=True) if made is not None]
    style = Look(colour, symbol, "solid")
    add_bars(plot, name, estimated(known, clip, rows), style, row, col, horizontal=horizontal)


def right_fresh(
    arm: str, rows: pl.DataFrame, difficulty: str | None = None, **filters: Any
) -> Behind:
    """Right fresh answers of groups with signal, of one difficulty if given.

    rows: those of the arm of `entropy_validity_rows`, which know the buckets of a difficulty.
    """
    if difficulty is not None:
        rows = rows.filter(pl.col("difficulty") == difficulty)
    buckets = rows["bucket"].unique().sort().to_list()
    return rollouts(arm, correct=True, replayed=False, **{"bucket": buckets, **filters})


def add_reference(plot: go.Figure, at: float, row: int, col: int, horizontal: bool = False) -> None:
    """The line of no effect."""
    line = {"line_color": MUTED, "line_dash": "dash", "line_width": 1, "row": row, "col": col}
    if horizontal:
        plot.add_vline(x=at, **line)
    else:
        plot.add_hline(y=at, **line)
