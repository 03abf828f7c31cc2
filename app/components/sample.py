"""One evaluation sample: its question and answer, its text, and the other samples beside it."""

from typing import Any

import streamlit as st

from analysis import browse
from analysis.browse import Page
from analysis.browse_filters import Filters
from app import data
from app.browser import Browser, open_trajectory
from app.components.notes_editor import show_notes
from app.components.question_block import show_question
from app.components.response_view import TEXTS, show_response
from app.components.row_picker import row_picker
from app.components.trajectory_rows import column_config, header, meaning, trajectory_rows
from app.links import QUESTION

MOST = 1000  # samples of a question
BESIDE = ("sample", "correct", "chain_valid", "mean_entropy", "length", "preview")
NUMBERS = (
    "run", "arm", "seed", "step", "benchmark", "question", "sample", "level", "temperature",
    "length", "finish", "extracted", "mean_entropy", "nll", "shortcut", "step_errors",
)  # fmt: skip


def show_sample(browser: Browser) -> None:
    """The sample that the address names, or a word that the catalog does not hold it."""
    assert browser.trajectory is not None
    found = data.ask_catalog(browse.sample, browser.trajectory)
    if found.is_empty():
        st.warning("This catalog does not hold the sample that the address names:")
        st.code(browser.trajectory, language=None)
        return
    row = found.row(0, named=True)
    _show_headline(row)
    text, context = st.columns([3, 2], gap="medium")
    with text:
        show_question(row)
        show_response(row, browser, tuple(TEXTS))
    with context:
        show_notes(row["trajectory"], browser)
        _show_others(row)
        _show_numbers(row)


def _show_headline(row: dict[str, Any]) -> None:
    answer = {True: ":green-badge[✓ right]", False: ":red-badge[✗ wrong]"}.get(
        row["correct"], ":gray-badge[? ungraded]"
    )
    chain = {True: ":green-badge[chain valid]", False: ":orange-badge[chain flawed]"}.get(
        row["chain_valid"], ""
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f"{answer} {chain} sample {row['sample']} at step {row['step']}")
        st.page_link(
            QUESTION,
            label="This question over time",
            icon=":material/timeline:",
            query_params={"study": row["study"], "question": row["question"]},
        )
    st.code(row["trajectory"], language=None, wrap_lines=True)


def _show_others(row: dict[str, Any]) -> None:
    """Every sample of the question at this checkpoint; a click opens one."""
    filters = Filters(
        source="evaluation",
        run=row["run"],
        step_min=row["step"],
        step_max=row["step"],
        benchmark=row["benchmark"],
        question=row["question"],
        sort="sample",
    )
    beside = data.page(filters, 1, MOST, columns=BESIDE)
    st.caption(f"Samples of this question at this step: {counted(beside)}")
    row_picker(
        trajectory_rows(beside.frame, BESIDE),
        beside.frame["trajectory"].to_list(),
        row["trajectory"],
        "sample.others",
        open_trajectory,
        column_config=column_config(BESIDE, filters),
    )


def counted(page: Page) -> str:
    """`3 of 4 right`, of the graded ones; what is not graded or not shown besides."""
    correct = page.frame["correct"]
    words = f"{correct.sum():,} of {correct.count():,} right"
    if correct.null_count():
        words += f", {correct.null_count():,} ungraded"
    return words + (
        f" (the first {len(correct):,} of {page.total:,})" * (page.total > len(correct))
    )


def _show_numbers(row: dict[str, Any]) -> None:
    with st.expander("All its columns with their meaning"):
        st.dataframe(
            {
                "column": [header(name) for name in NUMBERS],
                "value": ["" if row[name] is None else str(row[name]) for name in NUMBERS],
                "meaning": [meaning(name, "evaluation") for name in NUMBERS],
            },
            hide_index=True,
        )
