"""From findings to verdicts.

A claim is `supported` when its interval lies wholly above the threshold, `contradicted` when
wholly below, and `inconclusive (underpowered)` when it holds the threshold; `not testable here`
when arms, a benchmark or a second seed are missing, or nothing varies. Intervals are those of
`Bootstrap.interval`, at the rate that Holm grants over all testable claims of the ledger.
C8 has a rule of its own (docs/snowball.md).
Statements that are counted (`analysis.claims.counted`) are outside that family.
"""

from dataclasses import replace

import numpy as np

from analysis.claims.counted import COUNTS
from analysis.claims.finding import Finding, Frames, NotTestableError, varies
from analysis.claims.ledger import Claim, Ledger
from analysis.claims.show import show, show_effect
from analysis.claims.snowball import Detected, detected
from analysis.claims.starts import start_notes
from analysis.claims.tests import TESTS
from analysis.claims.verdict import Verdict, VerdictWord
from analysis.statistics import holm_levels, permutation_p


def judge(ledger: Ledger, frames: Frames) -> list[Verdict]:
    """A verdict for every claim, in ledger order.

    frames: the answers of the named queries, by name. With none at all, what the paper's own
    tables decide is decided, and nothing else.
    """
    findings: dict[str, Finding | Detected] = {}
    verdicts: dict[str, Verdict] = {}
    for claim in ledger.claims:
        try:
            if claim.test in COUNTS:
                verdicts[claim.id] = _counted(claim, frames)
            else:
                findings[claim.id] = _tested(claim, frames)
        except NotTestableError as reason:
            said = f"Not testable here: {reason}."
            verdicts[claim.id] = Verdict(claim.id, "not testable here", said)
    tested = [claim for claim in ledger.claims if claim.id in findings]
    p_values = [_p_value(claim, findings[claim.id]) for claim in tested]
    levels = holm_levels(p_values, ledger.alpha)
    for claim, p, alpha in zip(tested, p_values, levels, strict=True):
        finding = findings[claim.id]
        found = (
            detected(claim, finding, alpha)
            if isinstance(finding, Detected)
            else _verdict(claim, finding, p, alpha)
        )
        verdicts[claim.id] = replace(found, notes=[*found.notes, *start_notes(claim, frames)])
    return [verdicts[claim.id] for claim in ledger.claims]


def _counted(claim: Claim, frames: Frames) -> Verdict:
    holds, seen = COUNTS[claim.test](claim, frames)
    where = "the paper's own tables" if claim.asks == "paper" else "the log of this study"
    word: VerdictWord = "supported" if holds else "contradicted"
    return Verdict(claim.id, word, f"By {where}: {seen}.")


def _tested(claim: Claim, frames: Frames) -> Finding | Detected:
    finding = TESTS[claim.test](claim, frames)
    if isinstance(finding, Finding) and not varies(finding.made):
        raise NotTestableError(
            f"it comes to {show(finding.made.value, claim.unit)} and nothing varies between seeds "
            f"and questions, so nothing says how far another study could lie"
        )
    return finding


def _p_value(claim: Claim, finding: Finding | Detected) -> float:
    return finding.p if isinstance(finding, Detected) else finding.made.p_value(claim.threshold)


def _verdict(claim: Claim, finding: Finding, p: float, alpha: float) -> Verdict:
    made = finding.made
    low, high = np.clip(made.interval(1 - alpha), finding.least, finding.greatest).tolist()
    smallest = made.smallest_effect(alpha)
    word: VerdictWord
    bound = f"{claim.threshold:g}"
    if low > claim.threshold:
        word, reading = "supported", f"The whole interval lies above {bound}, as claimed."
    elif high < claim.threshold:
        word, reading = "contradicted", f"The whole interval lies below {bound}, against the claim."
    else:
        word = "inconclusive (underpowered)"
        found = f"an effect of {show_effect(smallest, claim.unit)} or more"
        if smallest > finding.greatest - claim.threshold:
            found = "no effect that is possible"
        reading = (
            f"The interval holds {bound}: this study can tell neither way. With its seeds and "
            f"questions it would find {found} in four of five studies."
        )
        if claim.effect is not None and high < claim.threshold + claim.effect:
            named = show_effect(claim.effect, claim.unit)
            reading += f" It excludes the effect that the ledger names (+{named})."
    return Verdict(
        claim.id,
        word,
        reading,
        value=made.value,
        low=low,
        high=high,
        level=1 - alpha,
        p=p,
        smallest_effect=smallest,
        power=None if claim.effect is None else made.power(claim.effect, alpha),
        permutation_p=None if finding.pairs is None else permutation_p(finding.pairs),
        seeds=made.seeds,
        questions=made.questions if finding.by_question else None,
        notes=finding.notes,
    )
