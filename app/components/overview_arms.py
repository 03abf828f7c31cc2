"""The arms of a study with their intervals; a click on one opens its answers."""

from typing import Any

import polars as pl
import streamlit as st

from analysis.behind import Behind, rollouts, samples
from analysis.closing import (
    SCORES_HEADER,
    UNADJUSTED,
    benchmark_rows,
    has_many_benchmarks,
    meaning,
    scores_meaning,
)
from app.components.closing_table import closing_table
from app.components.plain import plain
from app.links import open_rows


def arms_table(study: str, comparison: dict[str, Any]) -> None:
    table = closing_table(comparison)
    event = _clickable(table, f"overview.arms.{study}", "Every arm with its accuracy and intervals")
    st.caption(
        f"{meaning(comparison)} {UNADJUSTED} A click on an arm opens its trajectories, or its test "
        f"answers where it was not trained."
    )
    if (row := clicked_row(event["selection"])) is not None:
        open_rows(study=study, **behind_arm(comparison, table["arm"][row]))
    if has_many_benchmarks(comparison):
        _benchmarks(study, comparison)


def _benchmarks(study: str, comparison: dict[str, Any]) -> None:
    """Every benchmark by itself; a click opens the samples of an arm on it."""
    table = pl.DataFrame(benchmark_rows(comparison), schema=list(SCORES_HEADER), orient="row")
    alt = "Every benchmark and arm with its scores and intervals"
    event = _clickable(table, f"overview.benchmarks.{study}", alt)
    st.caption(f"{plain(scores_meaning(comparison))} A click on a row opens its samples.")
    if (row := clicked_row(event["selection"])) is not None:
        open_rows(study=study, **samples(table["arm"][row], benchmark=table["benchmark"][row]))


def behind_arm(comparison: dict[str, Any], arm: str) -> Behind:
    """The rows of an arm: its trajectories, or its samples if it has no training."""
    trained = any(each["arm"] == arm and each["training"] for each in comparison["arms"])
    return rollouts(arm) if trained else samples(arm)


def clicked_row(selection: Any) -> int | None:
    """The row that was clicked, at its edge or in a cell; None when none was."""
    rows = [*selection.get("rows", []), *(row for row, _ in selection.get("cells", []))]
    return next(iter(rows), None)


def _clickable(table: pl.DataFrame, key: str, alt: str) -> Any:
    return st.dataframe(
        table,
        hide_index=True,
        key=key,
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        alt=alt,
    )
