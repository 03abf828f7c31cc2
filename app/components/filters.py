"""The filters of the trajectory browser; each shows the address and writes to it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import polars as pl
import streamlit as st

from analysis import browse
from analysis.browse import Choices
from analysis.browse_filters import Filters, Marker, active, filters_of, without
from analysis.domains import NAMES
from app import data, state
from app.browser import Browser, read, switched

SOURCES = {"training": "training trajectories", "evaluation": "evaluation samples"}
MARKERS: dict[Marker, str] = {
    "code": "code",
    "shortcut": "shortcut",
    "repetition": "repetition",
    "step_errors": "wrong steps",
}
FOLDED = (
    "domain", "chain_valid", "finish", "markers", "level", "question", "length_min", "length_max",
    "entropy_min", "entropy_max", "age_min", "age_max",
)  # fmt: skip


def control(field: str, value: Any) -> dict[str, Any]:
    """`state.control` for a filter: a change goes to the first page."""
    return state.control(Browser, field, value, page=1)


def show_source(browser: Browser) -> None:
    """Training or evaluation; the filters that both have stay."""
    key = "browser.source"
    st.session_state[key] = browser.filters.source
    st.segmented_control(
        "Rows of",
        list(SOURCES),
        format_func=SOURCES.__getitem__,
        required=True,
        key=key,
        on_change=lambda: state.write(switched(read(), st.session_state[key])),
    )


def show_filters(browser: Browser) -> None:
    """Every filter that the rows have, one below the other; the rarer ones folded away."""
    filters = browser.filters
    has = filters_of(filters.source)
    choices: Choices = data.ask_catalog(browse.choices, filters.source)
    _show_runs(filters)
    if "benchmark" in has:
        _one_of("Benchmark", "benchmark", choices.benchmark, filters)
    _range("Step", "step", filters, step=1)
    st.text_input(
        "Response contains",
        placeholder="text, in any case",
        **control("text", filters.text or ""),
    )
    st.toggle("is a regular expression (RE2)", **control("regex", filters.regex))
    if "bucket" in has:
        _some_of("k: right in the group", "bucket", choices.group_successes, filters)
    if "replayed" in has:
        _choice("Rollout", "replayed", filters, {False: "fresh", True: "replayed"})
    _show_answer(filters)
    st.toggle("★ starred only", **control("starred", browser.starred))
    on = sum(name in FOLDED for name in active(filters))
    with st.expander(f"More filters: {on} on" if on else "More filters", expanded=on > 0):
        _show_folded(filters, has, choices)
    st.button("Clear all filters", on_click=clear)


def clear() -> None:
    """All rows of the table again; what is sorted by and the open row stay."""
    browser = read()
    filters = without(browser.filters, *active(browser.filters), "regex")
    state.write(replace(browser, filters=filters, starred=False, page=1))


def _show_runs(filters: Filters) -> None:
    """Study, arms, seeds and run; each offers what those before it leave."""
    runs = data.answer("runs_overview")
    _one_of("Study", "study", runs["study"], filters)
    if filters.study:
        runs = runs.filter(pl.col("study") == filters.study)
    for title, field, column in (("Arms", "arms", "arm"), ("Seeds", "seeds", "seed")):
        _some_of(title, field, runs[column], filters)
        if chosen := getattr(filters, field):
            runs = runs.filter(pl.col(column).is_in(chosen))
    _one_of("Run", "run", runs["run"], filters)


def _show_answer(filters: Filters) -> None:
    """Right, wrong or ungraded: two filters of which one at most is on."""
    key = "browser.answer"
    graded = {True: "right", False: "wrong", None: None}[filters.correct]
    st.session_state[key] = "ungraded" if filters.ungraded else graded
    st.segmented_control(
        "Answer",
        ["right", "wrong", "ungraded"],
        key=key,
        on_change=lambda: state.write(answered(read(), st.session_state[key])),
    )


def answered(browser: Browser, answer: str | None) -> Browser:
    """Only right, wrong or ungraded rows; all with None."""
    correct = {"right": True, "wrong": False}.get(answer or "")
    return state.change(browser, correct=correct, ungraded=answer == "ungraded", page=1)


def _show_folded(filters: Filters, has: tuple[str, ...], choices: Choices) -> None:
    if "domain" in has:
        _choice("Benchmarks", "domain", filters, NAMES)
    _choice("Chain", "chain_valid", filters, {True: "valid", False: "flawed"})
    _one_of("Finish reason", "finish", choices.finish, filters)
    if "markers" in has:
        st.multiselect(
            "Markers, all of them",
            list(MARKERS),
            format_func=MARKERS.__getitem__,
            placeholder="any",
            **control("markers", filters.markers),
        )
    _range("Entropy", "entropy", filters, step=0.05)
    _range("Length", "length", filters, step=1)
    if "age_min" in has:
        _range("Age", "age", filters, step=1)
    _some_of("Level", "level", choices.level, filters)
    st.text_input("Question id", **control("question", filters.question or ""))


def _one_of(title: str, field: str, values: Iterable[Any], filters: Filters) -> None:
    chosen = getattr(filters, field)
    known = _known(values, chosen)
    st.selectbox(title, known, placeholder="all", **control(field, chosen))


def _some_of(title: str, field: str, values: Iterable[Any], filters: Filters) -> None:
    chosen = getattr(filters, field)
    known = _known(values, *chosen)
    st.multiselect(title, known, placeholder="all", **control(field, chosen))


def _range(title: str, name: str, filters: Filters, step: int | float) -> None:
    for column, end, word in zip(st.columns(2), ("min", "max"), ("from", "to"), strict=True):
        field = f"{name}_{end}"
        column.number_input(
            f"{title} {word}",
            value=None,
            step=step,
            placeholder="any",
            **control(field, getattr(filters, field)),
        )


def _choice(title: str, field: str, filters: Filters, names: dict[Any, str]) -> None:
    st.segmented_control(
        title,
        list(names),
        format_func=names.__getitem__,
        **control(field, getattr(filters, field)),
    )


def _known(values: Iterable[Any], *chosen: Any) -> list[Any]:
    """What can be chosen, and what the address has chosen even where the catalog lacks it."""
    known = sorted({value for value in values if value is not None})
    return known + [item for item in chosen if item is not None and item not in known]
