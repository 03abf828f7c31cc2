"""Snowball: does replaying marked answers spread the mark? Verdict, evidence, and the offenders."""

from dataclasses import dataclass

import streamlit as st

from analysis.arms import arm_order
from analysis.snowball_figures import (
    MARKERS,
    Marker,
    Measured,
    draw_curves,
    draw_doses,
    draw_events,
    draw_gaps,
    measure,
)
from app import data, state
from app.components.figure import show_figure
from app.components.map_scope import trained_runs
from app.components.snowball_parts import explain, parts_table, verdict_of
from app.components.snowball_rows import offenders
from app.components.study_picker import pick_study
from app.components.verdict_card import verdict_card

CLAIM = "C8"  # of the ledger: flawed chains


@dataclass(frozen=True)
class Snowballs:
    """What the address holds. by_later: the offenders with most marked answers afterwards first."""

    study: str | None = None
    marker: Marker = "flawed"
    by_later: bool = False


def show() -> None:
    data.require_catalog()
    state.restore("snowball")
    study = pick_study(Snowballs, state.read(Snowballs).study)
    if trained_runs(study).is_empty():
        st.info("This study has no trained run yet: nothing was replayed.")
    else:
        _snowball(study)
    state.remember("snowball")


def _snowball(study: str) -> None:
    address = state.read(Snowballs)
    st.segmented_control(
        "Marker",
        list(MARKERS),
        format_func=MARKERS.__getitem__,
        required=True,
        **state.control(Snowballs, "marker", address.marker),
    )
    found: Measured = data.ask_catalog(measure, study, address.marker)
    _what_lacks(found)
    _verdict(study, address.marker, found)
    explain()
    parts_table(found.snowball)
    _curves(study, address.marker, found)
    _replays(study, address.marker, found)
    st.subheader("The offending trajectories", anchor=False)
    st.segmented_control(
        "First those with",
        [False, True],
        format_func={False: "most replays", True: "most marked answers afterwards"}.__getitem__,
        required=True,
        **state.control(Snowballs, "by_later", address.by_later),
    )
    offenders(study, address.marker, address.by_later)


def _what_lacks(found: Measured) -> None:
    """What this study cannot show, a sentence each."""
    if found.curves.is_empty():
        st.info("Of no right answer of this study it is known whether it has this marker.")
    if not found.replayed:
        st.info("No arm of this study replays a trajectory: there is nothing that could spread.")
    elif not found.replayed_marked:
        st.info("Nothing that was replayed has this marker: there is nothing that could spread.")
    if found.seeds == 1:
        st.info("One seed only: an interval holds for its questions, not for another training.")


def _verdict(study: str, marker: Marker, found: Measured) -> None:
    outputs = data.stage_outputs(study) if marker == "flawed" else None
    cards = [] if outputs is None else [pair for pair in outputs.verdicts if pair[0].id == CLAIM]
    for claim, verdict in cards:
        verdict_card(study, claim, verdict)
    if not cards:
        verdict_of(found.snowball, MARKERS[marker])


def _curves(study: str, marker: Marker, found: Measured) -> None:
    st.subheader("Marked share over training", anchor=False)
    show_figure(draw_curves(found.curves, marker), f"snowball.curves.{marker}", study=study)
    st.caption(
        "Of the right fresh answers to questions of the fresh stream, held at one mix of "
        "questions. Line: mean over seeds; band: least to greatest. A point opens the marked "
        "right fresh answers of its ten steps."
    )


def _replays(study: str, marker: Marker, found: Measured) -> None:
    st.subheader("After a replay", anchor=False)
    left, right = st.columns(2, gap="medium")
    with left:
        st.text("Event study, matched")
        show_figure(draw_gaps(found.gaps, marker), f"snowball.gaps.{marker}", study=study)
        st.caption(
            "Marked less like unmarked first replays, 95 % interval over questions and seeds. "
            "The placebo should lie on 0."
        )
    with right:
        st.text("Dose, as observed")
        show_figure(draw_doses(found.doses, marker), f"snowball.doses.{marker}", study=study)
        st.caption(
            "No evidence by itself: who is often marked is replayed marked. The last point holds "
            "all higher doses. The estimate of the effect is the dose-response in the table."
        )
    arms = arm_order(found.events["arm"].to_list())
    if not arms:
        return
    with st.expander("Around the first replay, as observed, an arm each"):
        st.caption(
            "Visits before the replay are leads, but no placebo: the replay was chosen among "
            "their answers, so the two lines differ there by choice alone. Visit 0 is the placebo. "
            "A point opens the replayed trajectories of its line."
        )
        for arm in arms:
            st.text(arm)
            plot = draw_events(found.events, arm, marker)
            show_figure(plot, f"snowball.events.{marker}.{arm}", study=study)


show()
