"""Snowball: does replaying marked answers spread the mark? Verdict, evidence, and the offenders."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import streamlit as st

from analysis.claims import show_power
from analysis.snowball import Snowball
from analysis.snowball_figures import (
    MARKERS,
    Marker,
    Replays,
    after_replays,
    draw_curves,
    draw_doses,
    draw_events,
    draw_gaps,
    judge,
    marked_shares,
)
from app import data, state
from app.components.figure import show_figure
from app.components.scope import trained_runs
from app.components.snowball_parts import explain, in_words, parts_table, verdict_of
from app.components.snowball_rows import offenders
from app.components.study_picker import pick_study
from app.components.verdict_card import verdict_card

CLAIM, FIGURE = "C8", "snowball"  # of the ledger, and among the observations: flawed chains
FIRST = {False: "most replays", True: "most marked answers afterwards"}
View = Literal["verdict", "curves", "replays", "events", "offenders"]
VIEWS: dict[View, str] = {
    "verdict": "verdict",
    "curves": "over training",
    "replays": "after a replay",
    "events": "around it",
    "offenders": "offenders",
}


@dataclass(frozen=True)
class Snowballs:
    """What the address holds. parts: whether the detector is asked although the ledger has its
    verdict. by_later: the offenders with most marked answers afterwards first."""

    study: str | None = None
    marker: Marker = "flawed"
    view: View = "verdict"
    parts: bool = False
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
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _segments("Marker", "marker", MARKERS, address)
        _segments("Show", "view", VIEWS, address)
    _what_lacks(data.answer("snowball_counts", study=study, marker=address.marker))
    match address.view:
        case "verdict":
            _verdict(study, address)
        case "curves":
            _curves(study, address.marker)
        case "replays":
            _replays(study, address.marker)
        case "events":
            _events(study, address.marker)
        case "offenders":
            _segments("First those with", "by_later", FIRST, address)
            offenders(study, address.marker, address.by_later)


def _segments(title: str, field: str, names: Mapping[Any, str], address: Snowballs) -> None:
    st.segmented_control(
        title,
        list(names),
        format_func=names.__getitem__,
        required=True,
        **state.control(Snowballs, field, getattr(address, field)),
    )


def _what_lacks(counts: pl.DataFrame) -> None:
    """What this study cannot show, a sentence each."""
    if not counts["right_fresh"].sum():
        st.info("Of no right answer of this study it is known whether it has this marker.")
    if not counts["replayed"].sum():
        st.info("No arm of this study replays a trajectory: there is nothing that could spread.")
    elif not counts["replayed_marked"].sum():
        st.info("Nothing that was replayed has this marker: there is nothing that could spread.")
    if counts["seed"].n_unique() == 1:
        st.info("One seed only: an interval holds for its questions, not for another training.")


def _verdict(study: str, address: Snowballs) -> None:
    """That of the ledger, as the analysis left it; where there is none, the detector's, now."""
    outputs = data.stage_outputs(study) if address.marker == "flawed" else None
    cards = [] if outputs is None else [pair for pair in outputs.verdicts if pair[0].id == CLAIM]
    for claim, verdict in cards:
        verdict_card(study, claim, verdict)
        if power := show_power(verdict):
            st.markdown(f"Power to find a strong snowball: {power}")
    if outputs is not None and cards:
        in_words([line for each in outputs.observed if each.name == FIGURE for line in each.lines])
        st.toggle(
            "The parts as a table, calculated now",
            **state.control(Snowballs, "parts", address.parts),
        )
    if not cards or address.parts:
        found: Snowball = data.ask_catalog(judge, study, address.marker)
        if not cards:
            verdict_of(found, MARKERS[address.marker])
        parts_table(found)
    explain()


def _curves(study: str, marker: Marker) -> None:
    found: pl.DataFrame = data.ask_catalog(marked_shares, study, marker)
    show_figure(draw_curves(found, marker), f"snowball.curves.{marker}", study=study)
    st.caption(
        "Marked share of the right fresh answers to questions of the fresh stream, held at one mix "
        "of questions. Line: mean over seeds; band: least to greatest. A point opens the marked "
        "right fresh answers of its ten steps."
    )


def _replays(study: str, marker: Marker) -> None:
    found: Replays = data.ask_catalog(after_replays, study, marker)
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
            "all higher doses. The estimate of the effect is the dose-response of the verdict."
        )


def _events(study: str, marker: Marker) -> None:
    rows = data.answer("snowball_event_study", study=study, marker=marker)
    if rows.is_empty():
        st.info("No first replay of this study can be told marked or unmarked.")
        return
    st.caption(
        "As observed. Visits before the replay are leads, but no placebo: the replay was chosen "
        "among their answers, so the two lines differ there by choice alone. Visit 0 is the "
        "placebo. A point opens the replayed trajectories of its line."
    )
    show_figure(draw_events(rows, marker), f"snowball.events.{marker}", study=study)


show()
