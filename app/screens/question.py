"""Question: one question over the training, across arms and seeds."""

from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from analysis.question_choice import (
    MOST_RUNS,
    ORDERS,
    Order,
    chosen_questions,
    closer_arm,
    drawn_runs,
)
from app import data, state
from app.components.question_runs import show_slots, show_tests, show_timeline, show_visits
from app.components.question_tables import question_rows
from app.components.row_picker import row_picker
from app.components.steps import neighbours, show_steps
from app.components.study_picker import pick_study

SIZE = 100  # questions a page


@dataclass(frozen=True)
class Question:
    """What the address holds. No question: the first of the list. `trajectory` gets a ring.

    `arms` and `seeds` are drawn; of one `arm` every rollout is.
    """

    study: str | None = None
    question: str | None = None
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    arm: str | None = None
    trajectory: str | None = None
    order: Order = "flips"
    text: str | None = None
    level: int | None = None
    page: int = 1


def show() -> None:
    data.require_catalog()
    state.restore("question")
    address = state.read(Question)
    study = pick_study(Question, address.study)
    questions = data.answer("question_list", study=study)
    if questions.is_empty():
        st.info(
            "This study's log names no question: nothing has been logged yet, or it is an import "
            "whose rollouts do not say what was asked."
        )
    else:
        found = _list(address, questions)
        _one(address, study, questions, found)
    state.remember("question")


def _list(address: Question, questions: pl.DataFrame) -> pl.DataFrame:
    """The table to choose from; returns all that pass its filters, in order."""
    levels = questions["level"].drop_nulls().unique().sort().to_list()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            "First come the",
            list(ORDERS),
            format_func=ORDERS.__getitem__,
            width=220,
            **_control("order", address.order),
        )
        st.text_input("Text or id contains", width=240, **_control("text", address.text or ""))
        if levels:
            st.selectbox(
                "Level",
                sorted({*levels, *([] if address.level is None else [address.level])}),
                index=None,
                placeholder="all",
                width=110,
                **_control("level", address.level),
            )
    found = chosen_questions(questions, address.order, address.text, address.level)
    pages = max(1, -(-found.height // SIZE))
    page = min(max(1, address.page), pages)
    st.caption(
        f"{found.height:,} of {questions.height:,} questions. Flip: the share of right answers "
        "crosses one half, counted from the last visit that was not at one half. Click a row to "
        "see the question below."
    )
    if found.is_empty():
        st.info("No question passes these filters.")
        return found
    shown = found.slice((page - 1) * SIZE, SIZE)
    ids = shown["question"].to_list()
    chosen = address.question or found["question"][0]
    row_picker(question_rows(shown), ids, chosen, "question.list", _choose, height=250)
    if pages > 1:
        key = f"questions {page} of {pages}"  # a key of its own: the address decides the page
        st.pagination(pages, default=page, key=key, on_change=_turn, args=(key,))
    return found


def _one(address: Question, study: str, questions: pl.DataFrame, found: pl.DataFrame) -> None:
    """The chosen question, or the first of the list."""
    ids = found["question"].to_list()
    id = address.question or (ids[0] if ids else None)
    if id is None:
        return
    row = questions.filter(pl.col("question") == id)
    if row.is_empty():
        st.warning("This study does not hold the question that the address names:")
        st.code(id, language=None)
        return
    place = f"question {ids.index(id) + 1:,} of {len(ids):,}" if id in ids else ""
    place = place or "this question does not pass the filters of the list"
    show_steps(*neighbours(ids, id), lambda to: _go(to, ids), "question", place)
    _head(row.row(0, named=True))
    _history(address, study, id)


def _head(row: dict[str, Any]) -> None:
    question, gold = st.columns([3, 1])
    question.caption("Question")
    question.code(row["text"] or "The log does not hold its text.", language=None, wrap_lines=True)
    gold.caption("Gold")
    gold.code(row["gold"] or "unknown", language=None, wrap_lines=True)
    facts = [f"level {row['level']}"] if row["level"] is not None else []
    if row["visits"]:
        facts += [
            f"{row['visits']:,} visits in {row['runs']:,} run{'s' * (row['runs'] != 1)}",
            f"{row['right']:,} of {row['graded']:,} fresh rollouts right",
            f"{row['flips']:,} flips",
            f"{row['replays']:,} replays",
            f"retired in {row['retired']:,}",
        ]
    st.markdown(" · ".join(facts))
    st.code(row["question"], language=None)


def _history(address: Question, study: str, id: str) -> None:
    visits = data.answer("question_visits", study=study, question=id)
    if visits.is_empty():
        st.info("No run of this study trained on this question: it is asked in tests only.")
    else:
        _runs(address, study, id, visits)
    show_tests(study, data.answer("question_evaluations", study=study, question=id))


def _runs(address: Question, study: str, id: str, visits: pl.DataFrame) -> None:
    arms = sorted({*visits["arm"], *address.arms})
    seeds = sorted({*visits["seed"].drop_nulls(), *address.seeds})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(arms) > 1:
            st.multiselect(
                "Arms", arms, placeholder="all", width=380, **_keep("arms", address.arms)
            )
        if len(seeds) > 1:
            st.multiselect(
                "Seeds", seeds, placeholder="all", width=240, **_keep("seeds", address.seeds)
            )
    drawn, passing = drawn_runs(visits, address.arms, address.seeds)
    if not drawn:
        st.info("No run of these arms and seeds trained on this question.")
        return
    if passing > len(drawn):
        st.info(
            f"{passing} runs trained on this question; {MOST_RUNS} are drawn, the first seeds of "
            f"every arm first. Choose arms or seeds to see others."
        )
    visits = visits.filter(pl.col("run").is_in(drawn))
    events = data.answer("question_events", study=study, run=drawn, question=id)
    _figure(address, study, id, visits, events)
    show_visits(study, visits, events)


def _figure(
    address: Question, study: str, id: str, visits: pl.DataFrame, events: pl.DataFrame
) -> None:
    """All arms and one of them closer; by slot where there is one step only."""
    known = data.answer("study_runs", study=study).join(visits, on="run", how="semi")
    steps: Any = (visits["step"].max(), known["steps"].max())
    last = max(step or 1 for step in steps)
    asked = {"study": study, "question": id}
    marked = address.trajectory
    if last <= 1:
        runs = visits["run"].unique().sort().to_list()
        show_slots(study, data.answer("question_rollouts", run=runs, **asked), marked)
        return
    row = data.trajectory(marked) if marked else None
    arms = visits["arm"].unique().sort().to_list()
    arm = closer_arm(arms, address.arm, row["arm"] if row else None)
    if len(arms) > 1:
        st.selectbox("Rollouts and buckets of", arms, width=320, **_keep("arm", arm))
    runs = visits.filter(pl.col("arm") == arm)["run"].unique().sort().to_list()
    rollouts = data.answer("question_rollouts", run=runs, **asked)
    show_timeline(study, arm, visits, rollouts, events, last, marked)


def _control(field: str, value: Any) -> dict[str, Any]:
    """A change of the list: the first page again, and the first question of it."""
    return state.control(Question, field, value, page=1, question=None, trajectory=None)


def _keep(field: str, value: Any) -> dict[str, Any]:
    return state.control(Question, field, value)


def _choose(question: str) -> None:
    state.write(state.change(state.read(Question), question=question, trajectory=None))


def _go(question: str, ids: list[str]) -> None:
    page = ids.index(question) // SIZE + 1
    change = {"question": question, "page": page, "trajectory": None}
    state.write(state.change(state.read(Question), **change))


def _turn(key: str) -> None:
    state.write(state.change(state.read(Question), page=st.session_state[key]))


show()
