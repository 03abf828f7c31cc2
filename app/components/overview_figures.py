"""Figures that the analysis of a study left: drawn as they are asked for, with how to read them."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.observations.registry import OBSERVATIONS
from analysis.stage_outputs import StageOutputs
from app import state
from app.components.figure import show_titled
from app.components.overview_missing import not_drawn
from app.components.plain import plain

TITLES = {each.name: each.title for each in OBSERVATIONS}


def study_figures(study: str, outputs: StageOutputs, names: Sequence[str]) -> None:
    """The figures of these names, two a row."""
    for left in range(0, len(names), 2):
        for column, name in zip(st.columns(2, gap="medium"), names[left : left + 2], strict=False):
            with column:
                _figure(study, outputs, name)


def observations(kind: type[Any], study: str, outputs: StageOutputs, named: str | None) -> None:
    """One observation, chosen by its question; the field `figure` of `kind` holds its name."""
    name = named if named in TITLES else next(iter(TITLES))
    st.selectbox(
        "Observation",
        list(TITLES),
        format_func=TITLES.__getitem__,
        **state.control(kind, "figure", name),
    )
    if named is not None and named not in TITLES:
        st.warning("There is no observation by the name in the address.")
    _figure(study, outputs, name)


def _figure(study: str, outputs: StageOutputs, name: str) -> None:
    figure = outputs.figure(name)
    if figure is None:
        not_drawn(study)
    else:
        show_titled(figure.plot, f"overview.{study}.{name}", study=study)
        st.caption(plain(figure.reading))
    lines = next((each.lines for each in outputs.observed if each.name == name), [])
    if lines:
        with st.expander("In words", expanded=figure is None):
            st.markdown("\n".join(f"- {plain(line)}" for line in lines))
