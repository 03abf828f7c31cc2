"""The filters of the trajectory browser; each shows the address and writes to it."""

from typing import Any

import polars as pl
import streamlit as st

from analysis.browse import Filters
from app import data, state
from app.browser import Browser

SORTS = {
    "step": "step",
    "mean_entropy": "mean entropy",
    "nll": "mean negative log-probability",
    "length": "length",
    "ratio_mean": "importance ratio",
    "group_successes": "right in the group (k)",
    "advantage": "advantage",
    "run": "run",
    "question": "question",
}
SIZES = [25, 50, 100, 200]


def control(field: str, value: Any) -> dict[str, Any]:
    """`state.control` for a filter: a change goes to the first page."""
    return state.control(Browser, field, value, page=1)


def show_filters(filters: Filters) -> None:
    """Every filter, one below the other."""
    runs = data.answer("runs_overview")
    studies = _known(runs["study"], filters.study)
    st.selectbox("Study", studies, placeholder="all", **control("study", filters.study))
    if filters.study:
        runs = runs.filter(pl.col("study") == filters.study)
    st.multiselect(
        "Arms",
        _known(runs["arm"], *filters.arms),
        placeholder="all",
        **control("arms", filters.arms),
    )
    if filters.arms:
        runs = runs.filter(pl.col("arm").is_in(filters.arms))
    st.selectbox(
        "Run", _known(runs["run"], filters.run), placeholder="all", **control("run", filters.run)
    )
    _range("Step", "step", filters.step_min, filters.step_max, step=1)
    st.text_input(
        "Response contains",
        placeholder="text, in any case",
        **control("text", filters.text or ""),
    )
    st.multiselect(
        "Bucket: k right in the group",
        _known(_successes(studies), *filters.bucket),
        placeholder="all",
        **control("bucket", filters.bucket),
    )
    _choice("Rollout", "replayed", filters.replayed, {False: "fresh", True: "replayed"})
    _choice("Answer", "correct", filters.correct, {True: "right", False: "wrong"})
    _choice("Chain", "chain_valid", filters.chain_valid, {True: "valid", False: "flawed"})
    _range("Mean entropy", "entropy", filters.entropy_min, filters.entropy_max, step=0.05)
    st.text_input("Question id", **control("question", filters.question or ""))
    st.button("Clear all filters", on_click=lambda: state.write(Browser()))


def show_order(filters: Filters, size: int) -> None:
    """Sort, direction and page size, side by side."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "Sort by",
            list(dict.fromkeys([*SORTS, filters.sort])),
            format_func=lambda name: SORTS.get(name, name),
            width=260,
            **control("sort", filters.sort),
        )
        st.selectbox(
            "Rows",
            _known(pl.Series(SIZES), size),
            width=110,
            **control("size", size),
        )
        st.toggle("greatest first", **control("descending", filters.descending))


def _range(title: str, name: str, low: Any, high: Any, step: int | float) -> None:
    for column, end, value in zip(st.columns(2), ("min", "max"), (low, high), strict=True):
        with column:
            st.number_input(
                f"{title} {'from' if end == 'min' else 'to'}",
                value=None,
                step=step,
                placeholder="any",
                **control(f"{name}_{end}", value),
            )


def _choice(title: str, field: str, value: Any, names: dict[Any, str]) -> None:
    st.segmented_control(title, list(names), format_func=names.__getitem__, **control(field, value))


def _successes(studies: list[str]) -> pl.Series:
    counts = [data.answer("buckets", study=study)["group_successes"] for study in studies]
    return pl.concat([pl.Series(dtype=pl.Int64), *counts])


def _known(values: pl.Series, *chosen: Any) -> list[Any]:
    """What can be chosen, and what the address has chosen even where the catalog lacks it."""
    known = sorted(values.drop_nulls().unique())
    return known + [item for item in chosen if item is not None and item not in known]
