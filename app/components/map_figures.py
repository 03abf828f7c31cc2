"""A figure that the analysis of a study left, with how to read it and what it says."""

from shlex import quote

import streamlit as st

from app import data
from app.components.figure import show_figure
from app.components.narrow_figure import narrow
from app.components.plain import plain


def study_figure(study: str, name: str, key: str) -> None:
    """The figure of this name; a sentence where there is none yet."""
    outputs = data.stage_outputs(study)
    figure = None if outputs is None else outputs.figure(name)
    if outputs is None or figure is None:
        command = "analyse" if outputs is None else "figures"
        st.info("It is not made yet. This command makes it:")
        st.code(f"exgrpo {command} --study {quote(study)}", language=None)
        return
    show_figure(narrow(figure.plot), f"{key}.{study}.{name}", study=study)
    st.caption(plain(figure.reading))
    lines = [line for each in outputs.observed if each.name == name for line in each.lines]
    if lines:
        with st.expander("In words"):
            st.markdown("\n".join(f"- {plain(line)}" for line in lines))
