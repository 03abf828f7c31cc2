"""Figures that the analysis of a study left, with how to read them and what they say."""

from collections.abc import Sequence

import streamlit as st

from analysis.figures import Figure
from app import data
from app.components.figure import show_figure
from app.components.narrow_figure import narrow
from app.components.plain import plain


def study_figures(study: str, names: Sequence[str], key: str) -> None:
    """The figures of these names, two a row; a sentence where there are none yet."""
    outputs = data.stage_outputs(study)
    figures = [] if outputs is None else [each for each in outputs.figures if each.name in names]
    if outputs is None or not figures:
        command = "analyse" if outputs is None else "figures"
        st.info("They are not made yet. This command makes them:")
        st.code(f"exgrpo {command} --study {study}", language=None)
        return
    lines = {each.name: each.lines for each in outputs.observed}
    for left in range(0, len(figures), 2):
        part = figures[left : left + 2]
        for column, figure in zip(st.columns(2, gap="medium"), part, strict=False):
            with column:
                _figure(figure, lines.get(figure.name, []), study, key)


def _figure(figure: Figure, lines: Sequence[str], study: str, key: str) -> None:
    show_figure(narrow(figure.plot), f"{key}.{study}.{figure.name}", study=study)
    st.caption(plain(figure.reading))
    if lines:
        with st.expander("In words"):
            st.markdown("\n".join(f"- {plain(line)}" for line in lines))
