"""Arms contrast: does the marked share rise faster where marked trajectories are replayed most?

Seeds are assigned to arms by us, so that a difference is the arm's doing, if not the marker's.
Only visits of the fresh stream count, whose questions are the same whatever an arm replays, and a
slope is that inside questions: a mix that moves to harder ones cannot pass for a rise.
"""

import numpy as np
import polars as pl

from analysis.snowball.cells import NotHereError, by_cell, ratios, seeds_of
from analysis.statistics import Bootstrap, Trend, bootstrap_mean, mann_kendall

HIGH = "highest_entropy"
COMPARED = ("exgrpo", "question_replay", "on_policy")  # lowest entropy, no trajectory, no replay
MIN_SEEDS = 2
STEPS_OF_A_SLOPE = 100  # a slope is in shares per 100 steps


def contrast(fresh: pl.DataFrame, replicates: int) -> tuple[Bootstrap, list[str]]:
    """Slope of arm HIGH minus the mean slope of the arms COMPARED that are there, by seed.

    fresh: rows of query `snowball_fresh`. Also the compared arms. Raises NotHereError.
    """
    cells = {arm: slopes(fresh.filter(pl.col("arm") == arm)) for arm in (HIGH, *COMPARED)}
    compared = [arm for arm in COMPARED if seeds_of(cells[arm])]
    if not seeds_of(cells[HIGH]) or not compared:
        absent = HIGH if compared or not seeds_of(cells[HIGH]) else " or ".join(COMPARED)
        raise NotHereError(f"no right answers over time whose marker is known, of {absent}")
    if not fresh.filter(pl.col("arm").is_in([HIGH, *compared]))["marked"].sum():
        raise NotHereError("no right answer of these arms is marked")
    seeds = sorted(set.intersection(*(seeds_of(cells[arm]) for arm in (HIGH, *compared))))
    if len(seeds) < MIN_SEEDS:
        raise NotHereError(
            f"{MIN_SEEDS} seeds or more must have {HIGH} and {', '.join(compared)}; "
            f"{len(seeds)} {'has' if len(seeds) == 1 else 'have'}"
        )
    questions = sorted(set().union(*(cells[arm]["question"] for arm in (HIGH, *compared))))
    high, *others = (ratios(cells[arm], seeds, questions) for arm in (HIGH, *compared))
    return bootstrap_mean(high - np.mean(others, axis=0), replicates), compared


def slope(fresh: pl.DataFrame, arm: str, replicates: int) -> Bootstrap | None:
    """The slope of one arm over its own seeds; None where it has none."""
    cells = slopes(fresh.filter(pl.col("arm") == arm))
    seeds = sorted(seeds_of(cells))
    if not seeds:
        return None
    return bootstrap_mean(ratios(cells, seeds, sorted(set(cells["question"]))), replicates)


def slopes(rows: pl.DataFrame) -> pl.DataFrame:
    """Cells of the least-squares slope of the marked share in time, inside run and question."""
    count, time = pl.col("right_fresh"), pl.col("window_start") / STEPS_OF_A_SLOPE
    middle = ((count * time).sum() / count.sum()).over("run", "question")
    return by_cell(
        rows,
        pl.col("marked") * (time - middle),
        count * (time - middle) ** 2,
    )


def curve(fresh: pl.DataFrame, arm: str) -> pl.DataFrame:
    """Mean, least and greatest marked share over the seeds of an arm, by window.

    The share of a run in a window is its own over all windows, plus the mean of what its answers
    are above that of their question: held at one mix of questions.
    """
    count, marked = pl.col("right_fresh"), pl.col("marked")
    of_question = (marked.sum() / count.sum()).over("run", "question")
    of_run = (marked.sum() / count.sum()).over("run")
    rows = fresh.filter(pl.col("arm") == arm).with_columns(own=of_question, of_run=of_run)
    shares = rows.group_by("run", "window_start").agg(
        share=pl.col("of_run").first() + (marked - count * pl.col("own")).sum() / count.sum()
    )
    return (
        shares.group_by("window_start")
        .agg(
            pl.col("share").mean().alias("mean"),
            pl.col("share").min().alias("low"),
            pl.col("share").max().alias("high"),
        )
        .sort("window_start")
    )


def rise(fresh: pl.DataFrame, arm: str) -> Trend:
    """Mann-Kendall trend of an arm's curve; windows depend on each other, so it describes."""
    return mann_kendall(curve(fresh, arm)["mean"].to_numpy())
