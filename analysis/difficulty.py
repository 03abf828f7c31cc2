"""How hard a question is for the policy, by the right answers k of its group of K."""

import polars as pl

DIFFICULTIES = ("failed", "hard", "medium", "easy", "solved")


def difficulty(successes: pl.Expr, size: pl.Expr) -> pl.Expr:
    """One of DIFFICULTIES: hard up to a quarter right, easy from three quarters; null if k is.

    The three between are column `difficulty` of the log (`exgrpo/batch.py`); tested to agree.
    """
    share = successes / size
    return (
        pl.when(share == 0)
        .then(pl.lit("failed"))
        .when(share <= 1 / 4)
        .then(pl.lit("hard"))
        .when(share < 3 / 4)
        .then(pl.lit("medium"))
        .when(share < 1)
        .then(pl.lit("easy"))
        .when(share == 1)
        .then(pl.lit("solved"))
    )
