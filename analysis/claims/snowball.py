"""The test of C8: the snowball detector, which has parts and a rule of its own."""

from dataclasses import dataclass

from analysis.claims.finding import Frames, NotTestableError, frame_of
from analysis.claims.ledger import Claim
from analysis.claims.verdict import Verdict
from analysis.snowball import QUERIES, snowball_finding


@dataclass(frozen=True)
class Detected:
    """What the detector found: its joint p, and the answers that it judges again at any rate."""

    p: float
    frames: Frames


def snowball_detected(claim: Claim, frames: Frames) -> Detected:
    """Do replayed flaws spread, by the detector's rule (docs/snowball.md)?"""
    taken = {name: frame_of(name, frames) for name in QUERIES}
    found = snowball_finding(taken)
    if found.p is None:
        raise NotTestableError(found.reading.rstrip("."))
    return Detected(found.p, taken)


def detected(claim: Claim, finding: Detected, alpha: float) -> Verdict:
    """The verdict at the rate that the ledger's family grants."""
    found = snowball_finding(finding.frames, alpha)
    return Verdict(
        claim.id,
        found.verdict,
        found.reading,
        value=found.value,
        low=found.low,
        high=found.high,
        level=found.level,
        p=finding.p,
        power=found.power,
        seeds=found.seeds,
        questions=found.questions,
        notes=found.notes,
    )
