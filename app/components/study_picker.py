"""Which study a screen shows."""

import streamlit as st

from analysis.drawing import chosen_by_tests
from app import data, state


def pick_study(kind: type[state.S], named: str | None) -> str:
    """Let a study be chosen; `kind` is the page's dataclass with a field `study`.

    The one that the address names, else the largest. Without any study the page ends, saying so.
    """
    studies: list[str] = (
        data.answer("studies")
        .sort("steps", descending=True, maintain_order=True)["study"]
        .to_list()
    )
    if not studies:
        st.info("The catalog holds no run yet. Run `make reproduce`, or `exgrpo import FILE`.")
        st.stop()
    study = named if named in studies else studies[0]
    st.selectbox("Study", studies, width=320, **state.control(kind, "study", study))
    if named in studies:
        st.session_state[state.STUDY] = named
    elif named is not None:
        st.warning("Study: the catalog does not hold the one that the address names.")
    return study


def say_chosen_by_tests(study: str) -> None:
    """A warning where the tested checkpoint was chosen by test questions."""
    if what := chosen_by_tests(data.answer("study_runs", study=study)):
        st.warning(f"Tested: the {what}. Its accuracies are too high for questions that are new.")
