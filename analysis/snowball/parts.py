"""A part of the detector: an estimate with its interval, and the sentence that says it."""

from dataclasses import dataclass, replace
from typing import Literal

from analysis.statistics import Bootstrap

Name = Literal["arms contrast", "event study", "dose-response", "placebo", "inheritance"]

UNITS: dict[Name, str] = {
    "arms contrast": "points per 100 steps",
    "event study": "points",
    "dose-response": "points a marked replay",
    "placebo": "points",
    "inheritance": "points of overlap",
}


@dataclass(frozen=True)
class Part:
    """What one part found. Values are shares (0.01 is a point); None where it cannot be tested.

    p: two-sided, of no effect. level: that of the interval. power: how surely this lake would find
    the effect of the planted strong snowball at that level; None where none was planted.
    """

    name: Name
    sentence: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    level: float | None = None
    power: float | None = None
    seeds: int = 0
    questions: int = 0

    @property
    def rises(self) -> bool:
        """The whole interval is above 0."""
        return self.low is not None and self.low > 0

    def below(self, effect: float) -> bool:
        """The whole interval is below an effect."""
        return self.high is not None and self.high < effect


def found(name: Name, made: Bootstrap, rate: float, planted: float | None, what: str) -> Part:
    """The part with the interval that misses at `rate`. what: the sentence before the numbers."""
    low, high = made.interval(1 - rate)
    power = None if planted is None else made.power(planted, rate)
    part = Part(
        name, "", made.value, low, high, made.p_value(), 1 - rate, power, made.seeds, made.questions
    )
    over = f"{made.seeds} seeds" if made.seeds > 1 else "one seed, so over questions only"
    return replace(
        part,
        sentence=f"{what}: {numbers(part)}, {100 * (1 - rate):.1f} % interval over "
        f"{made.questions} questions and {over}; p = {part.p:.2g}.",
    )


def absent(name: Name, why: str) -> Part:
    return Part(name, f"Not here: {name}: {why}.")


def numbers(part: Part) -> str:
    """`+4.1 points [+1.0, +7.2]`; empty where the part was not tested."""
    if part.value is None or part.low is None or part.high is None:
        return ""
    return f"{_points(part.value)} {UNITS[part.name]} [{_points(part.low)}, {_points(part.high)}]"


def _points(share: float) -> str:
    return f"{100 * share:+.1f}"
