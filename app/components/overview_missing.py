"""What an overview says where a stage has not run yet."""

from shlex import quote

import streamlit as st


def not_analysed(study: str) -> None:
    st.info(
        "This study has runs, but no analyses yet: curves and run health are from its log, tables, "
        "verdicts and observations come with them. This goes on where it was stopped:"
    )
    st.code(f"make reproduce STUDY={quote(study)}", language=None)


def not_drawn(study: str) -> None:
    st.info("This figure is not drawn yet. This draws all of them:")
    st.code(f"exgrpo figures --study {quote(study)}", language=None)
