"""A claim and what this study says about it."""

import streamlit as st

from analysis.claims import Claim, Verdict, show_effect, show_interval, show_power

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
                f"{verdict.sample}"
            )
        st.markdown(verdict.reading)
        with st.popover("How it was tested", type="tertiary"):
            st.markdown(f"**Estimand.** {claim.estimand}")
            st.markdown(f"**The paper** ({claim.source}): {claim.paper}. {claim.scale}.")
            st.markdown(f"**Deviations.** {claim.deviations}")
            if claim.effect is not None and verdict.power is not None:
                effect = show_effect(claim.effect, claim.unit)
                st.markdown(f"**Power** to find {effect}: {show_power(verdict)}")
            for note in verdict.notes:
                st.markdown(note)
