"""What a study says about a claim."""

from dataclasses import dataclass, field
from typing import Literal

VerdictWord = Literal[
    "supported", "contradicted", "inconclusive (underpowered)", "not testable here"
]


@dataclass(frozen=True)
class Verdict:
    """What this study says about one claim; numbers are None where it cannot be tested.

    level: of the interval, as Holm's rule grants it. smallest_effect: what the study would find
    with probability 0.8; power: with what probability it would find the claim's own `effect`; both
    at the variance observed and at that level. permutation_p: two-sided p of the arms' labels
    exchanged within a question, for differences of accuracy; it supposes nothing of the shape of
    the differences, and leaves out that other seeds could be drawn. questions: None where one
    number a seed is compared. A statement that is counted has its numbers in `reading`.
    """

    claim: str
    verdict: VerdictWord
    reading: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    smallest_effect: float | None = None
    power: float | None = None
    permutation_p: float | None = None
    seeds: int | None = None
    questions: int | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def sample(self) -> str:
        """`4 seeds, 200 questions`; empty where nothing was estimated."""
        if self.seeds is None:
            return ""
        seeds = f"{self.seeds} seeds"
        return seeds if self.questions is None else f"{seeds}, {self.questions} questions"
