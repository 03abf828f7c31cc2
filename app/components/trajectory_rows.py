"""Trajectories as rows for reading: short columns, words instead of flags, a preview."""

import polars as pl

PREVIEW = 120


def words(flag: str, right: str, wrong: str, unknown: str) -> pl.Expr:
    """A nullable flag in words."""
    column = pl.col(flag)
    return (
        pl.when(column.is_null())
        .then(pl.lit(unknown))
        .when(column)
        .then(pl.lit(right))
        .otherwise(pl.lit(wrong))
    )


ANSWER = words("correct", "✓ right", "✗ wrong", "? ungraded").alias("answer")
CHAIN = words("chain_valid", "valid", "flawed", "").alias("chain")
ROLLOUT = words("replayed", "↻ replayed", "fresh", "").alias("rollout")
PREVIEW_TEXT = pl.col("response").str.slice(0, PREVIEW).str.replace_all(r"\s+", " ")


def trajectory_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """A page of `analysis.browse.page` for the table; its studies where there are several."""
    studies = ["study"] if frame["study"].n_unique() > 1 else []
    return frame.select(
        *studies,
        "arm",
        "seed",
        "step",
        "question",
        pl.format("{} of {}", "group_successes", "group_size").alias("k of K"),
        ROLLOUT,
        ANSWER,
        CHAIN,
        pl.col("mean_entropy").round(4).alias("entropy"),
        "length",
        PREVIEW_TEXT.alias("response"),
        "run",
    )


def group_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the query `group` for the table beside a trajectory."""
    return frame.select(
        "slot",
        ROLLOUT,
        ANSWER,
        CHAIN,
        pl.col("mean_entropy").round(4).alias("entropy"),
        PREVIEW_TEXT.alias("response"),
    )


def lineage_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the query `lineage` for the table beside a trajectory."""
    return frame.select(
        "step",
        words("replayed", "↻ replayed", "first sampled", "").alias("event"),
        "group_successes",
        pl.col("mean_entropy").round(4).alias("entropy"),
        pl.col("ratio_mean").round(3).alias("mean ratio"),
        pl.col("weight_mean").round(3).alias("mean weight"),
        pl.col("advantage").round(3),
    ).rename({"group_successes": "k"})
