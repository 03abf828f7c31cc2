"""The responses of both sides to one question, or two trajectories, and where they differ."""

from typing import Any

import polars as pl
import streamlit as st

from analysis.compared_responses import MOST, question_text, responses
from analysis.pairs import HALF, Comparison, Side
from app import data, state
from app.components.answers import ANSWERS
from app.components.compare_state import TOKEN_VIEWS, Compare, View, chosen_response
from app.components.diff_view import text_diff_html, token_diff_html
from app.components.row_picker import row_picker
from app.components.token_view import SCALES
from app.components.trajectory_rows import group_rows
from app.links import TRAJECTORIES, rows_query

VIEWS: dict[View, str] = {
    "sides": "side by side",
    "unified": "one text",
    "entropy": "tokens by entropy",
    "ratio": "tokens by log-ratio",
}

Row = dict[str, Any]


def show_question(
    made: Comparison,
    address: Compare,
    benchmark: str | None,
    sides: tuple[Side, Side],
    study: str,
    question: str,
) -> None:
    """Question, a response of each side to choose, and their difference."""
    asked = data.ask_catalog(question_text, benchmark, question)
    _question(question, None if asked.is_empty() else asked.row(0, named=True))
    of_question = made.questions.filter(pl.col("question") == question).row(0, named=True)
    chosen: list[Row] = []
    for column, name, letter, side in zip(
        st.columns(2), ("left", "right"), "AB", sides, strict=True
    ):
        runs = tuple(sorted({getattr(pair, f"run_{letter.lower()}") for pair in made.pairs}))
        found = data.ask_catalog(responses, benchmark, side, runs, question)
        with column:
            right = of_question[f"accuracy_{letter.lower()}"] > HALF
            chosen.append(_pick(found, name, letter, getattr(address, f"{name}_sample"), right))
            steps = made.steps_a if letter == "A" else made.steps_b
            st.page_link(
                TRAJECTORIES,
                label=f"All answers of {letter} to this question",
                icon=":material/segment:",
                query_params=rows_query(**answers_behind(study, benchmark, side, steps, question)),
            )
    show_difference(chosen[0], chosen[1], address, logged=benchmark is None)


def show_trajectories(address: Compare) -> None:
    """The two trajectories that the address names; the group of the first to choose from."""
    rows: dict[str, Row | None] = {}
    for column, name in zip(st.columns(2), ("a", "b"), strict=True):
        with column:
            named = getattr(address, name)
            st.text_input(f"Trajectory {name.upper()}", **state.control(Compare, name, named or ""))
            rows[name] = None if named is None else data.trajectory(named)
            if named is not None and rows[name] is None:
                st.warning(f"{name.upper()}: the catalog does not hold this trajectory.")
            elif (row := rows[name]) is not None:
                st.text(_facts(row, f"step {row['step']} · slot {row['slot']}"))
                st.page_link(
                    TRAJECTORIES,
                    label=f"Open {name.upper()}",
                    icon=":material/segment:",
                    query_params=rows_query(trajectory=named),
                )
    a, b = rows["a"], rows["b"]
    if a is not None:
        _question(a["question"], {"text": a["text"], "gold": a["gold"]})
        _group(a, address)
    if a is None or b is None:
        st.info("Name two trajectories, or one as A and click another of its group.")
        return
    if a["question"] != b["question"]:
        st.warning("A and B answer different questions.")
    show_difference(a | {"id": a["trajectory"]}, b | {"id": b["trajectory"]}, address, logged=True)


def show_difference(a: Row, b: Row, address: Compare, logged: bool) -> None:
    """Where two responses differ. `logged`: they are trajectories, whose tokens are in the log."""
    views = [view for view in VIEWS if logged or view not in TOKEN_VIEWS]
    view = address.view if address.view in views else "sides"
    st.segmented_control(
        "Difference",
        views,
        format_func=VIEWS.__getitem__,
        required=True,
        **state.control(Compare, "view", view),
    )
    if not logged:
        st.caption("Of evaluation samples the log holds the text, not the tokens.")
    if view in TOKEN_VIEWS:
        left, right = (data.tokens(row["run"], row["id"]) for row in (a, b))
        if not left.is_empty() and not right.is_empty():
            st.html(token_diff_html(left, right, SCALES[view]))
            return
        st.info("The log holds no tokens of one of them (an import has text only).")
    ours, theirs = (row["response"] or "" for row in (a, b))
    if ours == theirs:
        st.caption("Both responses are the same, letter for letter.")
    st.html(text_diff_html(ours, theirs, unified=view == "unified"))


def _question(question: str, row: Row | None) -> None:
    with st.container(horizontal=True):
        known = row or {"text": None, "gold": None}
        for title, text in (
            ("Question", known["text"] or "not in the catalog"),
            ("Gold", known["gold"] or "unknown"),
            ("Id", question),
        ):
            with st.container(width="content"):
                st.caption(title)
                st.code(text, language=None, wrap_lines=True)


def _pick(found: pl.DataFrame, name: str, letter: str, named: str | None, right: bool) -> Row:
    chosen = chosen_response(found, named, right)
    rows = {row["id"]: row for row in found.iter_rows(named=True)}
    more = f" (the first {MOST})" if found.height == MOST else ""
    st.selectbox(
        f"Response of {letter}: {found.height} to choose from{more}",
        list(rows),
        format_func=lambda id: _label(rows[id]),
        **state.control(Compare, f"{name}_sample", chosen),
    )
    if named is not None and named not in rows:
        st.warning(f"{letter}: the response that the address names is not among these.")
    return rows[chosen]


def _label(row: Row) -> str:
    run = row["run"] if row["seed"] is None else f"seed {row['seed']}"
    return _facts(row, f"{run} · step {row['step']} · sample {row['sample']}")


def _facts(row: Row, start: str) -> str:
    facts = [start, ANSWERS[row["correct"]]]
    if row["chain_valid"] is not None:
        facts.append("chain valid" if row["chain_valid"] else "chain flawed")
    if row["length"] is not None:
        facts.append(f"{row['length']} tokens")
    if row["mean_entropy"] is not None:
        facts.append(f"entropy {row['mean_entropy']:.3f}")
    return " · ".join(facts)


def answers_behind(
    study: str, benchmark: str | None, side: Side, steps: list[int], question: str
) -> dict[str, Any]:
    """The filters of the rows behind one side of a question."""
    runs: Row = {"arms": [side.arm]} if side.run is None else {"run": side.run}
    if benchmark is None:
        window = {"step_min": side.first, "step_max": side.last, "replayed": False}
        return {"study": study, "question": question, **runs, **window}
    window = {"step_min": steps[0], "step_max": steps[-1]}
    source = {"source": "evaluation", "benchmark": benchmark}
    return {"study": study, "question": question, **runs, **window, **source}


def _group(row: Row, address: Compare) -> None:
    group = data.answer("group", run=row["run"], step=row["step"], group=row["group"])
    others = group.filter(pl.col("trajectory") != row["trajectory"])
    if others.is_empty():
        return
    with st.expander("Compare A with another of its group", expanded=address.b is None):
        row_picker(
            group_rows(others),
            others["trajectory"].to_list(),
            address.b,
            "compare.group",
            _pick_b,
        )


def _pick_b(trajectory: str) -> None:
    state.write(state.change(state.read(Compare), b=trajectory))
