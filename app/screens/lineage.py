"""Lineage: where a gradient came from; one trajectory from its birth to its last replay."""

from dataclasses import dataclass
from typing import Any

import polars as pl
import streamlit as st

from analysis.lineage import draws, fate, uses
from app import data, state
from app.components.answers import ANSWERS, right_of
from app.components.lineage_parts import show_draws, show_timeline, show_uses
from app.components.lineage_tables import replayed_rows
from app.components.plain import plain
from app.components.row_picker import row_picker
from app.components.study_picker import pick_study


@dataclass(frozen=True)
class Lineage:
    """What the address holds. `trajectory`: as first sampled, or any replay; `step`: a draw."""

    study: str | None = None
    arms: tuple[str, ...] = ()
    trajectory: str | None = None
    step: int | None = None


def show() -> None:
    data.require_catalog()
    state.restore("lineage")
    address = state.read(Lineage)
    if address.trajectory is None:
        _picker(address)
    else:
        _one(address, address.trajectory)
    state.remember("lineage")


def _picker(address: Lineage) -> None:
    """The most replayed trajectories of a study."""
    study = pick_study(Lineage, address.study)
    frame = data.answer("lineage_replayed", study=study)
    if frame.is_empty():
        st.info(
            "No run of this study replayed a trajectory, so there is no lineage to follow. An "
            "import holds rollouts only; an on-policy arm stores none."
        )
        return
    arms = sorted({*frame["arm"], *address.arms})
    if len(arms) > 1:
        control = state.control(Lineage, "arms", address.arms)
        st.multiselect("Arms", arms, placeholder="all", width=420, **control)
    if address.arms:
        frame = frame.filter(pl.col("arm").is_in(address.arms))
    st.caption(
        f"The {frame.height:,} most replayed trajectories, at most 50 a run. Click one to see "
        "where its gradients came from."
    )
    if frame.is_empty():
        st.info("No trajectory of these arms was replayed.")
        return
    row_picker(
        replayed_rows(frame),
        frame["trajectory"].to_list(),
        None,
        "lineage.picker",
        _open,
        height=560,
    )


def _one(address: Lineage, named: str) -> None:
    """The lineage of the trajectory that the address names."""
    lineage = data.answer("lineage", trajectory=named)
    row = data.trajectory(named)
    if row is None:
        st.warning("This catalog does not hold the trajectory that the address names:")
        st.code(named, language=None)
        _back_button()
        return
    born = lineage.filter(~pl.col("replayed"))
    if row["replayed"]:
        origin = born["trajectory"][0] if born.height else row["source"]
        st.caption(f"The address names its replay at step {row['step']}.")
        row = data.trajectory(origin) or {**row, "trajectory": origin}
    _head(row, lineage, bool(born.height))
    _history(address, row, lineage, bool(born.height))


def _head(row: dict[str, Any], lineage: pl.DataFrame, born_here: bool) -> None:
    chain = {True: "chain valid", False: "chain flawed"}.get(row["chain_valid"])
    replays = lineage.filter("replayed").height
    arm = plain(row["arm"]) + ("" if row["seed"] is None else f", seed {row['seed']}")
    facts = [arm, f"**{ANSWERS[row['correct']]}**", *([chain] if chain else [])]
    facts.append(f"replayed {replays:,} time{'s' * (replays != 1)}")
    if born_here:
        facts.append(f"first sampled at step {row['step']}")
        k = right_of(row["group_successes"], row["group_size"], " right")
        facts.append(f"{k} in its group")
        if row["bucket"] is not None:
            facts.append(f"so bucket {row['bucket']}")
        if row["mean_entropy"] is not None:
            facts.append(f"entropy {row['mean_entropy']:.4f} nat/token")
        if row["behaviour_nll"] is not None:
            facts.append(f"mean log-probability {-row['behaviour_nll']:.4f} nat/token")
    else:
        facts.append("sampled outside of this log: from an expert or another run")
    st.markdown(" · ".join(facts))
    texts = [("Question", row["text"] or "not in the catalog"), ("Gold", row["gold"] or "unknown")]
    texts.append(("Its response", row["response"] or ""))
    for column, (title, text) in zip(st.columns([3, 1, 4]), texts, strict=True):
        column.caption(title)
        column.code(text, language=None, wrap_lines=True)
    st.code(row["trajectory"], language=None)
    with st.container(horizontal=True, vertical_alignment="center"):
        _back_button()
        st.page_link(
            "screens/trajectories.py",
            label="Its tokens and its group",
            icon=":material/segment:",
            query_params={"study": row["study"], "trajectory": row["trajectory"]},
        )
        if row["question"] is not None:
            st.page_link(
                "screens/question.py",
                label="Its question over time",
                icon=":material/timeline:",
                query_params={
                    "study": row["study"],
                    "question": row["question"],
                    "trajectory": row["trajectory"],
                },
            )


def _history(address: Lineage, row: dict[str, Any], lineage: pl.DataFrame, born_here: bool) -> None:
    run = row["run"]
    asked = {"run": [run], "question": row["question"]}
    rules = data.answer("lineage_rules", run=[run])
    rule = rules.row(0, named=True) if rules.height else None
    if row["question"] is None:
        st.info("The log does not say which question this answers: there is nothing to follow.")
        return
    candidates = data.answer("candidates_of_question", **asked)
    visits = data.answer("question_visits", **asked)
    events = data.answer("question_events", **asked)
    replays = uses(lineage, visits)
    if born_here:
        table = draws(candidates, row["trajectory"])
        considered = int(table["considered"].sum())
        lines = fate(row, rule, events.to_dicts(), considered, replays.height)
        st.markdown("\n".join(f"- {line}" for line in lines))
    if candidates.height or replays.height:
        birth = (row["step"], row["mean_entropy"]) if born_here else None
        last: Any = max(visits["step"].max() or 1, replays["step"].max() or 1)
        show_timeline(row, candidates, replays, visits, birth, last)
        if replays.height:
            show_uses(row, replays)
        show_draws(row, rule, candidates, address.step, _pick_draw, _open)


def _open(trajectory: str) -> None:
    state.write(state.change(state.read(Lineage), trajectory=trajectory, step=None))


def _pick_draw(step: str) -> None:
    state.write(state.change(state.read(Lineage), step=int(step)))


def _back_button() -> None:
    st.button(
        "Most replayed trajectories",
        icon=":material/arrow_back:",
        on_click=_back,
        key="lineage.back",
    )


def _back() -> None:
    state.write(state.change(state.read(Lineage), trajectory=None, step=None))


show()
