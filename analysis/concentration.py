"""How evenly draws and replays fall on questions: reuse, Lorenz curve, Gini, the share of the top.

From the rows of query `buffer_uses`. Questions that were stored and never used count as used 0
times.
"""

import math
from typing import Literal

import numpy as np
import polars as pl

from analysis.statistics import Floats

Counted = Literal["draws", "replays"]
POINTS = 51  # of a Lorenz curve
RUN = ("arm", "seed", "run")


def gini(uses: Floats) -> float | None:
    """0: all alike, 1: all on one. uses: [questions], 0 or more; None where there is no use."""
    ordered = np.sort(uses)
    count, total = len(ordered), float(ordered.sum())
    if not total:
        return None
    places = np.arange(1, count + 1)
    return float((2 * (places * ordered).sum() / total - count - 1) / count)


def top_share(uses: Floats, share: float) -> float | None:
    """What the most used `share` of the questions take, one question at least."""
    total = float(uses.sum())
    if not total:
        return None
    most = math.ceil(share * len(uses) - 1e-9)
    return float(np.sort(uses)[-most:].sum() / total)


def lorenz(uses: Floats) -> Floats:
    """Share of all uses on the least used part of the questions: at 0, 1/50, .. 1, [POINTS]."""
    ordered = np.concatenate([[0.0], np.sort(uses).cumsum()])
    at = np.linspace(0, 1, POINTS) * len(uses)
    return np.asarray(np.interp(at, np.arange(len(uses) + 1), ordered) / max(ordered[-1], 1))


def totals(uses: pl.DataFrame, counted: Counted) -> pl.DataFrame:
    """Uses of every question that a run stored or used: columns arm, seed, run, question, uses."""
    return (
        uses.group_by(*RUN, "question", maintain_order=True)
        .agg(uses=pl.col(counted).sum())
        .sort(*RUN, "question")
    )


def reuse(uses: pl.DataFrame, counted: Counted) -> pl.DataFrame:
    """Questions by how often they were used, mean over the runs of an arm: arm, times, mean."""
    counts = totals(uses, counted).group_by("arm", "run", times="uses").agg(count=pl.len())
    return mean_over_runs(counts)


def replaying(uses: pl.DataFrame) -> set[str]:
    """The arms that replay trajectories; others may draw questions and sample them anew."""
    return set(uses.filter(pl.col("replays") > 0)["arm"])


def mean_over_runs(counts: pl.DataFrame) -> pl.DataFrame:
    """Columns arm, run, times, count -> arm, times, mean: a run without such a time counts 0."""
    runs = counts.group_by("arm").agg(runs=pl.col("run").n_unique())
    return (
        counts.group_by("arm", "times")
        .agg(pl.col("count").sum())
        .join(runs, on="arm")
        .select("arm", "times", mean=pl.col("count") / pl.col("runs"))
        .sort("arm", "times")
    )


def over_time(uses: pl.DataFrame, counted: Counted) -> pl.DataFrame:
    """Gini and the shares of the top 1 % and 10 %, of all uses so far, by run and window.

    Columns arm, seed, run, first_step, gini, top_1, top_10; windows without a use so far are left
    out.
    """
    rows = []
    for run, mine in uses.group_by(*RUN, maintain_order=True):
        so_far: dict[str, int] = {}
        for (first_step,), window in mine.sort("first_step").group_by(
            "first_step", maintain_order=True
        ):
            for question, more in window.select("question", counted).iter_rows():
                so_far[question] = so_far.get(question, 0) + more
            counts = np.array(list(so_far.values()), dtype=float)
            rows.append(
                (*run, first_step, gini(counts), top_share(counts, 0.01), top_share(counts, 0.1))
            )
    names = {"first_step": pl.Int64, "gini": pl.Float64, "top_1": pl.Float64, "top_10": pl.Float64}
    kinds = {name: uses.schema[name] for name in RUN} | names
    return pl.DataFrame(rows, schema=kinds, orient="row").drop_nulls("gini")


def curves(uses: pl.DataFrame, counted: Counted) -> pl.DataFrame:
    """Lorenz curve of each arm, mean over its runs that used any: arm, questions, share."""
    known = totals(uses, counted).filter(pl.col("uses").sum().over("run") > 0)
    parts = [
        pl.DataFrame(
            {
                "arm": [arm] * POINTS,
                "questions": np.linspace(0, 1, POINTS),
                "share": lorenz(mine["uses"].to_numpy().astype(float)),
            }
        )
        for (arm, _), mine in known.group_by("arm", "run", maintain_order=True)
    ]
    if not parts:
        return pl.DataFrame(schema={"arm": pl.String, "questions": pl.Float64, "share": pl.Float64})
    return (
        pl.concat(parts)
        .group_by("arm", "questions", maintain_order=True)
        .agg(pl.col("share").mean())
    )
