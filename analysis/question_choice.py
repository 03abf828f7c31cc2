"""Which question to look at, and which runs of it: pure functions over answers of named queries."""

from collections.abc import Sequence
from typing import Literal

import polars as pl

from analysis.arms import METHOD

MOST_RUNS = 12  # drawn at once

Order = Literal["flips", "replayed", "never", "gained", "lost", "level"]
ORDERS: dict[Order, str] = {
    "flips": "most flips",
    "replayed": "most replayed",
    "never": "never right, most tried",
    "gained": "most gained",
    "lost": "most lost",
    "level": "hardest level",
}
_CHANGE = pl.col("last_share") - pl.col("first_share")
_KEYS: dict[Order, pl.Expr] = {
    "flips": pl.col("flips"),
    "replayed": pl.col("replays"),
    "never": pl.when(pl.col("right") == 0).then(pl.col("graded")),
    "gained": _CHANGE,
    "lost": -_CHANGE,
    "level": pl.col("level"),
}


def chosen_questions(
    questions: pl.DataFrame, order: Order, text: str | None, level: int | None
) -> pl.DataFrame:
    """Rows of the query `question_list` that pass, the most interesting first.

    `text` is found anywhere in the question's text or id, in any case.
    """
    if level is not None:
        questions = questions.filter(pl.col("level") == level)
    if text:
        wanted = text.lower()
        found = [
            pl.col(name).str.to_lowercase().str.contains(wanted, literal=True).fill_null(False)
            for name in ("text", "question")
        ]
        questions = questions.filter(found[0] | found[1])
    return questions.sort(
        _KEYS[order], "visits", "question", descending=[True, True, False], nulls_last=True
    )


def drawn_runs(
    visits: pl.DataFrame, arms: Sequence[str], seeds: Sequence[int], most: int = MOST_RUNS
) -> tuple[list[str], int]:
    """The runs to draw, and how many pass: those of the first seed of every arm come first.

    `visits`: rows with arm, seed and run; no arms or seeds: all of them.
    """
    runs = visits.select("arm", "seed", "run").unique()
    if arms:
        runs = runs.filter(pl.col("arm").is_in(list(arms)))
    if seeds:
        runs = runs.filter(pl.col("seed").is_in(list(seeds)))
    place = pl.col("run").rank("ordinal").over("arm", order_by=["seed", "run"])
    runs = runs.with_columns(place=place).sort("place", "arm", "run")
    return runs["run"][:most].to_list(), runs.height


def closer_arm(arms: Sequence[str], named: str | None, of_marked: str | None) -> str:
    """Of which arm every rollout is drawn: the named one, the marked trajectory's, the method's."""
    return next((arm for arm in (named, of_marked, METHOD) if arm in arms and arm), arms[0])
