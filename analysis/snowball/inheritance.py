"""Inheritance: do new marked answers copy the words of the marked trajectory that was replayed?

Overlap of 8-grams with the replayed one, less that with another question's (shuffled source), after
the replay against before. It goes beside the verdict, not into it: a flaw may be taught without its
words, and words without a flaw.
"""

import polars as pl

from analysis.snowball.cells import NotHereError, by_cell, ratios, seeds_of
from analysis.statistics import Bootstrap, bootstrap_mean


def inherited(copies: pl.DataFrame, replicates: int) -> Bootstrap:
    """Mean overlap beyond the shuffled source after the replay, less that before it.

    copies: rows of query `marker_inheritance`. Raises NotHereError where no seed has both sides.
    """
    known = copies.drop_nulls("difference")
    pairs = pl.col("pairs")
    before, after = (
        by_cell(known.filter(pl.col("after") == side), pairs * pl.col("difference"), pairs)
        for side in (False, True)
    )
    seeds = sorted(seeds_of(before) & seeds_of(after))
    if not seeds:
        raise NotHereError(
            "no marked answers of a question both before and after its marked replay"
        )
    questions = sorted(set(before["question"]) | set(after["question"]))
    values = ratios(after, seeds, questions) - ratios(before, seeds, questions)
    return bootstrap_mean(values, replicates)
