"""Trajectories and samples as rows for reading: words instead of flags, headers that explain."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from analysis.browse import ID, PREVIEW
from analysis.browse_filters import TABLES, Filters, Source
from app.components.answers import ANSWERS
from exgrpo.tables import RUNS
from exgrpo.tables.schema import FLOAT

SHOWN = 120  # characters of a response beside a trajectory

HEADERS = {
    "k_of_K": "k of K",
    "replayed": "rollout",
    "correct": "answer",
    "chain_valid": "chain",
    "mean_entropy": "entropy",
}
MEANINGS = {
    "k_of_K": "right ones of those of the group that count; sorted by k alone",
    "age": "step less birth step; 0 for a fresh rollout",
    PREVIEW: "its beginning; while searching, the surroundings of the first hit",
}
SORTED_BY = {PREVIEW: "response", "k_of_K": "group_successes"}


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


ANSWER = words("correct", *ANSWERS.values())
CHAIN = words("chain_valid", "valid", "flawed", "")
ROLLOUT = words("replayed", "↻ replayed", "fresh", "")
PREVIEW_TEXT = pl.col("response").str.slice(0, SHOWN).str.replace_all(r"\s+", " ")


def trajectory_rows(frame: pl.DataFrame, columns: Sequence[str] = ()) -> pl.DataFrame:
    """These columns of a page of `analysis.browse.page`, or all but the id; flags in words."""
    flags = {"correct": ANSWER, "chain_valid": CHAIN, "replayed": ROLLOUT}
    shown = columns or [name for name in frame.columns if name != ID]
    return frame.select(flags[name].alias(name) if name in flags else name for name in shown)


def column_config(columns: Sequence[str], filters: Filters) -> dict[str, Any]:
    """What heads each column: its name, how the rows are sorted by it, and what it means."""
    types = TABLES[filters.source].polars_schema
    arrow = " ↓" if filters.descending else " ↑"

    def config(name: str) -> Any:
        label = header(name) + (arrow if SORTED_BY.get(name, name) == filters.sort else "")
        explained = meaning(name, filters.source)
        if types.get(name) == FLOAT:
            return st.column_config.NumberColumn(label, help=explained, format="%.4g")
        if name == PREVIEW:
            return st.column_config.TextColumn(label, help=explained, width="large")
        return st.column_config.Column(label, help=explained)

    return {name: config(name) for name in columns}


def header(name: str) -> str:
    """What a column is called above the table."""
    return HEADERS.get(name, name)


def meaning(name: str, source: Source) -> str:
    """What a column of the table means, with its unit."""
    known = {column.name: column for column in (*RUNS.columns, *TABLES[source].columns)}
    if name in MEANINGS or name not in known:
        return MEANINGS.get(name, "id of the row")
    column = known[name]
    return column.meaning + (f" [{column.unit}]" if column.unit else "")


def group_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of the query `group` for the table beside a trajectory."""
    return frame.select(
        "slot",
        ROLLOUT.alias("rollout"),
        ANSWER.alias("answer"),
        CHAIN.alias("chain"),
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
