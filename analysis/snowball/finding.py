"""The detector's verdict as the ledger shows it, for claim C8."""

from dataclasses import dataclass

from analysis.snowball.verdict import Frames, Verdict, detect


@dataclass(frozen=True)
class SnowballFinding:
    """What the ledger shows of a snowball: the arms contrast as value and interval, in shares per
    100 steps (None where there is none), and the verdict of all parts together."""

    verdict: Verdict
    reading: str
    value: float | None
    low: float | None
    high: float | None
    level: float | None
    p: float | None
    power: float | None
    seeds: int
    questions: int
    notes: list[str]


def snowball_finding(frames: Frames, alpha: float = 0.05) -> SnowballFinding:
    """The detector's verdict on flawed chains, as claim C8 of the ledger shows it."""
    snowball = detect(frames, alpha=alpha)
    arms = snowball.part("arms contrast")
    notes = [part.sentence for part in snowball.parts] + list(snowball.notes)
    return SnowballFinding(
        snowball.verdict,
        snowball.reading,
        arms.value,
        arms.low,
        arms.high,
        arms.level,
        snowball.p,
        snowball.power,
        arms.seeds,
        arms.questions,
        notes,
    )
