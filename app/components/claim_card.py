"""A claim in full: what is claimed, how it was tested, what this study says, and why."""

import streamlit as st

from analysis.claims import Claim, Verdict, show, show_effect, show_interval, show_power
from analysis.domains import NAMES
from app.components.claim_evidence import rows_behind
from app.components.claim_interval import interval_figure
from app.components.claim_table import kind_of, word
from app.components.figure import show_figure
from app.components.plain import plain

Facts = list[tuple[str, str]]


def show_claim(claim: Claim, verdict: Verdict | None, study: str, family: int) -> None:
    """The whole card; `family`: how many claims were tested together."""
    heading = f" · {plain(word(verdict))}" if verdict else ""
    st.subheader(f"{plain(claim.id)}{heading}", anchor=False)
    st.markdown(f"**{plain(claim.statement)}**")
    if verdict:
        st.markdown(plain(verdict.reading))
        if verdict.value is not None and verdict.low is not None and verdict.high is not None:
            behind = rows_behind(claim, study)
            show_figure(
                interval_figure(claim, verdict, behind),
                key=f"claims.interval.{claim.id}",
                alt=f"{show_interval(verdict, claim.unit)}, threshold "
                f"{show(claim.threshold, claim.unit)}",
            )
    ours, theirs = st.columns(2, gap="medium")
    with ours:
        _facts(result_facts(claim, verdict, family) if verdict else [])
        _facts(how_tested(claim))
    with theirs:
        _facts(paper_facts(claim))
        if verdict and verdict.notes:
            st.markdown("**Notes**")
            st.markdown("\n".join(f"- {plain(note)}" for note in verdict.notes))


def result_facts(claim: Claim, verdict: Verdict, family: int) -> Facts:
    """What this study came to, label and text; what a verdict does not hold is left out."""
    effect = None if claim.effect is None else show_effect(claim.effect, claim.unit)
    power = show_power(verdict)
    smallest = verdict.smallest_effect
    facts = {
        "This study": show_interval(verdict, claim.unit),
        "From": verdict.sample,
        "Level": (
            f"{100 * verdict.level:.2f} % interval, as Holm's rule grants it among {family} "
            f"claims tested together"
            if verdict.level is not None
            else ""
        ),
        "p": "" if verdict.p is None else _p(verdict.p),
        "p by permutation": (
            ""
            if verdict.permutation_p is None
            else f"{_p(verdict.permutation_p)}, arms' labels exchanged within a question"
        ),
        "Smallest effect found": (
            ""
            if smallest is None
            else f"{show_effect(smallest, claim.unit)}, in four of five such studies"
        ),
        "Power": f"{power} to find {effect}" if power and effect else "",
    }
    return [(label, text) for label, text in facts.items() if text]


def how_tested(claim: Claim) -> Facts:
    """How the claim is tested, label and text."""
    how = "counted, no statistical test" if kind_of(claim) == "counted" else "statistical"
    facts = {
        "Estimand": claim.estimand,
        "Test": f"{claim.test.replace('_', ' ')} ({how})",
        "Threshold": show(claim.threshold, claim.unit) if kind_of(claim) == "tested" else "",
        "Arms": ", ".join(claim.arms),
        "Tests": NAMES[claim.domain] if claim.domain else claim.benchmark or "",
        "Deviations": claim.deviations,
    }
    return [(label, text) for label, text in facts.items() if text]


def paper_facts(claim: Claim) -> Facts:
    """What the paper has, label and text."""
    return [("The paper", claim.paper), ("Where", claim.source), ("About", claim.scale)]


def _p(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"{p:.4f}"


def _facts(facts: Facts) -> None:
    with st.container(gap="xsmall"):
        for label, text in facts:
            st.markdown(f"**{label}.** {plain(text)}")
