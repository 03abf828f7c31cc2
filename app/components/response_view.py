"""The response of a trajectory: raw, with its maths typeset, or as tokens coloured by a number."""

from collections.abc import Sequence
from typing import Any, get_args

import polars as pl
import streamlit as st

from analysis.token_weights import NOT_LOGGED, objective_of, weigh
from app import data, state
from app.browser import Browser, View, read
from app.components.latex_view import show_latex
from app.components.marked_text import show_text
from app.components.surprising import show_surprising
from app.components.token_view import SCALES, tokens_html

WINDOW = 1500  # tokens drawn at once: more make the page slow
TEXTS: dict[View, str] = {"raw": "raw text", "latex": "LaTeX"}
VIEWS: dict[View, str] = {
    view: TEXTS[view] if view in TEXTS else SCALES[view].name for view in get_args(View)
}


def show_response(
    row: dict[str, Any], browser: Browser, views: Sequence[View] = tuple(VIEWS)
) -> None:
    """`row` is one of `analysis.browse.trajectory` or `sample`; the address chooses of `views`."""
    view = browser.view if browser.view in views else views[0]
    st.segmented_control(
        "Response: as text, or its tokens coloured by" if len(views) > len(TEXTS) else "Response",
        views,
        format_func=VIEWS.__getitem__,
        required=True,
        **state.control(Browser, "view", view),
    )
    text = row["response"] or ""
    if view == "raw":
        show_text(text, browser.filters.text, browser.filters.regex)
    elif view == "latex":
        show_latex(text)
    else:
        _show_tokens(row, browser)


def _show_tokens(row: dict[str, Any], browser: Browser) -> None:
    tokens = data.tokens(row["run"], row["trajectory"])
    if tokens.is_empty():
        st.info("The log holds no tokens of this trajectory (an import has text only).")
        return
    weighed = weigh(tokens, row, data.ask_catalog(objective_of, row["run"]))
    if browser.view in ("weight", "advantage") and weighed.missing:
        st.info(weighed.missing)
    elif browser.view == "ratio" and tokens["logprob"].is_null().all():
        st.info(NOT_LOGGED)
    first = _first(browser, tokens)
    st.html(tokens_html(weighed.tokens, SCALES[browser.view], first, WINDOW, browser.token))
    show_surprising(tokens, browser)


def _first(browser: Browser, tokens: pl.DataFrame) -> int:
    """The position of the first token to draw: the address names a part, or a token in one."""
    windows = -(-tokens.height // WINDOW)
    named = browser.window if browser.token is None else browser.token // WINDOW + 1
    part = min(max(1, named), windows)
    if windows > 1:
        key = f"window {part} of {windows}"  # a key of its own: the address decides the part
        st.pagination(windows, default=part, key=key, on_change=_turn, args=(key,))
    return (part - 1) * WINDOW


def _turn(key: str) -> None:
    state.write(state.change(read(), window=st.session_state[key], token=None))
