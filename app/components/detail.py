"""One trajectory: its text or coloured tokens, its question, its group, where it was replayed."""

from typing import Any

import polars as pl
import streamlit as st

from app import data, state
from app.browser import Browser, open_trajectory, read
from app.components.filters import control
from app.components.row_picker import row_picker
from app.components.token_view import SCALES, tokens_html
from app.components.trajectory_rows import group_rows, lineage_rows

WINDOW = 1500  # tokens drawn at once: more make the page slow
VIEWS = {"raw": "raw text", "entropy": "tokens by entropy", "ratio": "tokens by ratio"}


def show_detail(browser: Browser) -> None:
    """The trajectory that the address names, or a word that the catalog does not hold it."""
    assert browser.trajectory is not None
    row = data.trajectory(browser.trajectory)
    if row is None:
        st.warning("This catalog does not hold the trajectory that the address names:")
        st.code(browser.trajectory, language=None)
        return
    _headline(row)
    text, context = st.columns([3, 2], gap="medium")
    with text:
        _question(row)
        _response(row, browser)
    with context:
        _group(row)
        _lineage(row)
        _all_columns(row)


def _headline(row: dict[str, Any]) -> None:
    answer = {True: ":green-badge[✓ right]", False: ":red-badge[✗ wrong]"}.get(
        row["correct"], ":gray-badge[? ungraded]"
    )
    chain = {True: ":green-badge[chain valid]", False: ":orange-badge[chain flawed]"}.get(
        row["chain_valid"], ""
    )
    rollout = ":violet-badge[↻ replayed]" if row["replayed"] else ":blue-badge[fresh]"
    facts = f"step {row['step']} · {row['group_successes']} of {row['group_size']} right"
    if row["mean_entropy"] is not None:
        facts += f" · entropy {row['mean_entropy']:.4f} nat/token"
    if row["length"] is not None:
        facts += f" · {row['length']} tokens"
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="center")
    left.markdown(f"{answer} {chain} {rollout} {facts}")
    right.code(row["trajectory"], language=None)


def _question(row: dict[str, Any]) -> None:
    texts = [
        ("Question", row["text"] or "not in the catalog"),
        ("Gold", row["gold"] or "unknown"),
        ("Answer read", row["extracted"] or "none"),
    ]
    for column, (title, text) in zip(st.columns([3, 1, 1]), texts, strict=True):
        column.caption(title)
        column.code(text, language=None, wrap_lines=True)
    if row["prompt"] and row["prompt"] != row["text"]:
        with st.expander("The prompt as the model saw it"):
            st.code(row["prompt"], language=None, wrap_lines=True)


def _response(row: dict[str, Any], browser: Browser) -> None:
    st.segmented_control(
        "Response",
        list(VIEWS),
        format_func=VIEWS.__getitem__,
        required=True,
        **control("view", browser.view),
    )
    if browser.view == "raw":
        st.code(row["response"] or "", language=None, wrap_lines=True)
        return
    tokens = data.tokens(row["run"], row["trajectory"])
    if tokens.is_empty():
        st.info("The log holds no tokens of this trajectory (an import has text only).")
        return
    windows = -(-tokens.height // WINDOW)
    part = min(max(1, browser.window), windows)
    if windows > 1:
        key = f"window {part} of {windows}"  # a key of its own: the address decides the part
        st.pagination(windows, default=part, key=key, on_change=_turn, args=(key,))
    st.html(tokens_html(tokens.slice((part - 1) * WINDOW, WINDOW), SCALES[browser.view]))


def _turn(key: str) -> None:
    state.write(state.change(read(), window=st.session_state[key]))


def _group(row: dict[str, Any]) -> None:
    group = data.answer("group", run=row["run"], step=row["step"], group=row["group"])
    st.caption(f"Its group: {row['group_successes']} of {row['group_size']} right; click to open")
    row_picker(
        group_rows(group),
        group["trajectory"].to_list(),
        row["trajectory"],
        "detail.group",
        open_trajectory,
    )
    st.button(
        "All of this question in this run",
        on_click=state.write,
        args=(_same_question(row),),
    )


def _same_question(row: dict[str, Any]) -> Browser:
    return state.change(
        Browser(), run=row["run"], question=row["question"], trajectory=row["trajectory"]
    )


def _lineage(row: dict[str, Any]) -> None:
    lineage = data.answer("lineage", trajectory=row["trajectory"])
    replays = lineage.filter(pl.col("replayed"))
    if replays.is_empty():
        st.caption("Lineage: never replayed")
        return
    st.caption(
        f"Lineage: first sampled at step {row['birth_step']}, replayed "
        f"{replays.height} time{'' if replays.height == 1 else 's'}; click to open"
    )
    row_picker(
        lineage_rows(lineage),
        lineage["trajectory"].to_list(),
        row["trajectory"],
        "detail.lineage",
        open_trajectory,
    )


def _all_columns(row: dict[str, Any]) -> None:
    columns = data.schema().filter(
        (pl.col("table") == "trajectories") & (pl.col("column") != "response")
    )
    with st.expander("All columns with their meaning"):
        st.dataframe(
            columns.select(
                "column",
                pl.Series("value", [_text(row[name]) for name in columns["column"]]),
                "meaning",
            ),
            hide_index=True,
        )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)
