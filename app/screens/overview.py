"""Overview: what a study came to, with intervals, what that says, and whether its runs are well.

Only what is in sight is asked for and drawn: one section at a time, named in the address.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import streamlit as st

from analysis.claims import Verdict
from analysis.curves import Cost
from analysis.drawing import StudyFacts, study_facts
from analysis.stage_outputs import StageOutputs
from app import data, state
from app.components.overview_arms import arms_table
from app.components.overview_curves import accuracy_curves, training_curves
from app.components.overview_figures import observations, study_figures
from app.components.overview_health import run_health
from app.components.overview_import import imported
from app.components.overview_missing import not_analysed
from app.components.plain import plain
from app.components.study_picker import pick_study
from app.components.verdict_card import NOT_TESTABLE, verdict_card
from app.links import rows_query

CARDS_A_ROW = 3
Section = Literal["curves", "accuracy", "claims", "health", "training", "observed"]
SECTIONS: dict[Section, str] = {
    "curves": "Learning curves",
    "accuracy": "Accuracy",
    "claims": "Claims",
    "health": "Run health",
    "training": "Training",
    "observed": "Observations",
}
ACCURACY = ("final_accuracy", "difference_to_on_policy", "accuracy_by_level", "signal_share")


@dataclass(frozen=True)
class Overview:
    """What the address holds: the study, for imports which `run`, and what is shown of it.

    by: what the learning curves run over; arms: those in the curves, none means all; figure: the
    observation that is shown.
    """

    study: str | None = None
    run: str | None = None
    section: Section = "curves"
    by: Cost = "step"
    arms: tuple[str, ...] = ()
    figure: str | None = None


def show() -> None:
    data.require_catalog()
    state.restore("overview")
    address = state.read(Overview)
    study = pick_study(Overview, address.study)
    runs = data.answer("study_runs", study=study)
    if study == "imports":
        imported(Overview, runs["run"].to_list(), address.run)
    else:
        _trained(address, study_facts(study, runs))
    state.remember("overview")


def _trained(address: Overview, facts: StudyFacts) -> None:
    st.markdown(f"**{plain(facts.world[0].upper() + facts.world[1:])}.** {_seeds(facts)}")
    if not facts.arms:
        st.info("Only the base model is here so far: no arm of this study has a run in the lake.")
        return
    outputs = data.stage_outputs(facts.name)
    if outputs is None:
        not_analysed(facts.name)
    else:
        arms_table(facts.name, outputs.comparison)
    st.segmented_control(
        "Section",
        get_args(Section),
        format_func=SECTIONS.__getitem__,
        required=True,
        label_visibility="collapsed",
        **state.control(Overview, "section", address.section),
    )
    _section(address, facts, outputs)
    st.page_link(
        "screens/trajectories.py",
        label="Read the trajectories",
        icon=":material/segment:",
        query_params=rows_query(study=facts.name),
    )


def _seeds(facts: StudyFacts) -> str:
    name = "Seed" if len(facts.seeds) == 1 else "Seeds"
    return f"{name} {', '.join(map(str, facts.seeds))}." if facts.seeds else ""


def _section(address: Overview, facts: StudyFacts, outputs: StageOutputs | None) -> None:
    if address.section == "curves":
        accuracy_curves(Overview, facts, outputs, address.by, address.arms)
    elif address.section == "training":
        training_curves(Overview, facts, address.arms)
    elif address.section == "health":
        run_health(facts.name)
    elif outputs is None:
        st.caption("This section comes with the analysis.")
    elif address.section == "accuracy":
        study_figures(facts.name, outputs, ACCURACY)
    elif address.section == "observed":
        observations(Overview, facts.name, outputs, address.figure)
    else:
        _claims(facts.name, outputs)


def _claims(study: str, outputs: StageOutputs) -> None:
    st.caption(
        "A verdict speaks about this study's model and task, never about the paper's. "
        "Supported: the whole interval lies beyond the threshold; contradicted: it lies on the "
        "other side; inconclusive: it holds the threshold, so this study can tell neither way."
    )
    decided = [pair for pair in outputs.verdicts if not _untested(pair[1])]
    for left in range(0, len(decided), CARDS_A_ROW):
        part = decided[left : left + CARDS_A_ROW]
        for column, (claim, verdict) in zip(st.columns(CARDS_A_ROW), part, strict=False):
            with column:
                verdict_card(study, claim, verdict)
    rest = [pair for pair in outputs.verdicts if _untested(pair[1])]
    with st.expander(f"Not testable in this study: {len(rest)}"):
        for claim, verdict in rest:
            st.markdown(f"**{claim.id}** {plain(claim.short)}. {plain(verdict.reading)}")


def _untested(verdict: Verdict) -> bool:
    return verdict.verdict == NOT_TESTABLE


show()
