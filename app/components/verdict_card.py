"""A claim and what this study says about it."""

import streamlit as st

from analysis.claims import Claim, Verdict, show_interval

COLOURS = {
    "supported": "green",
    "contradicted": "red",
    "inconclusive (underpowered)": "orange",
    "not testable here": "gray",
}


def verdict_card(claim: Claim, verdict: Verdict) -> None:
    """The verdict's word, the claim, the estimate with its interval, and what that means."""
    with st.container(border=True, height="stretch", gap="xsmall"):
        st.markdown(f":{COLOURS[verdict.verdict]}-badge[{verdict.verdict}]  **{claim.id}**")
        st.markdown(f"**{claim.statement}**")
        if verdict.value is not None and verdict.level is not None:
            st.markdown(
                f"{show_interval(verdict, claim.unit)} · {100 * verdict.level:.1f} % interval, "
                f"{verdict.seeds} seeds, {verdict.questions} questions"
            )
        st.markdown(verdict.reading)
        with st.popover("How it was tested", type="tertiary"):
            st.markdown(f"**Estimand.** {claim.estimand}")
            st.markdown(f"**The paper** ({claim.source}): {claim.paper}")
            for note in verdict.notes:
                st.markdown(note)
