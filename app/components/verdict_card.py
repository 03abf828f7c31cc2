"""A claim and what this study says about it, in short; the Claims screen has the rest."""

import streamlit as st

from analysis.claims import Claim, Verdict, show_interval
from app.components.plain import plain

NOT_TESTABLE = "not testable here"
COLOURS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive (underpowered)": "orange",
    NOT_TESTABLE: "gray",
}


def verdict_card(study: str, claim: Claim, verdict: Verdict) -> None:
    """The verdict's word, the claim, the estimate with its interval, and what that means."""
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.markdown(f":{COLOURS[verdict.verdict]}-badge[{verdict.verdict}]  **{claim.id}**")
        st.markdown(f"**{plain(claim.statement)}**")
        if verdict.value is not None and verdict.level is not None:
            st.markdown(
                f"{plain(show_interval(verdict, claim.unit))} · {100 * verdict.level:.1f} % "
                f"interval, {verdict.sample}"
            )
        st.caption(plain(verdict.reading))
        st.page_link(
            "screens/claims.py",
            label=f"How {claim.id} was tested",
            icon=":material/gavel:",
            query_params={"study": study, "claim": claim.id},
        )
