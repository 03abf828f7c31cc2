"""The closing table as text: one row an arm, in percent, every accuracy with its interval."""

from typing import Any

from analysis.arms import arm_order
from analysis.claims import Claim, Verdict, show_interval
from analysis.comparison import FEW_SEEDS

HEADER = (
    "arm",
    "seeds",
    "accuracy",
    "out of distribution",
    "with signal",
    "flawed",
    "time a run",
)
MEANING = (
    "Accuracy in % with its 95 % bootstrap interval over questions{seeds}. With signal: training "
    "groups that hold right and wrong answers. Flawed: of the right answers sampled in training, "
    "those whose chain is not valid. Time: training only."
)
UNADJUSTED = (
    "Intervals are 95 % bootstrap intervals, not adjusted for several comparisons; those of the "
    "verdicts are."
)
VERDICTS = (
    "Intervals of claims: by Student's t, which allows for few seeds, and adjusted by Holm for all "
    "claims tested; they are wider than the bootstrap intervals of tables and figures."
)


def closing_rows(comparison: dict[str, Any]) -> list[list[str]]:
    """Cells as in HEADER for every arm of a comparison (`analysis.comparison.compare`)."""
    arms = {entry["arm"]: entry for entry in comparison["arms"]}
    return [_row(arms[arm]) for arm in arm_order(list(arms))]


def meaning(comparison: dict[str, Any]) -> str:
    """One sentence on what the numbers of the closing table are."""
    most = max((len(entry["seeds"]) for entry in comparison["arms"]), default=0)
    if most <= 1:
        return MEANING.format(seeds=" only, as there is one seed")
    coarse = " (coarse with few seeds)" if most < FEW_SEEDS else ""
    return MEANING.format(seeds=f" and seeds{coarse}; base: over questions only")


def _row(entry: dict[str, Any]) -> list[str]:
    training = entry["training"] or {}
    return [
        entry["arm"],
        str(len(entry["seeds"]) or "-"),
        interval(entry["accuracy"].get("test_id")),
        interval(entry["accuracy"].get("test_ood")),
        percent(training.get("signal_share")),
        percent(training.get("flawed_share")),
        duration(training.get("seconds")),
    ]


def interval(made: dict[str, Any] | None, signed: bool = False) -> str:
    """`50.4 [48.0, 52.9]` in percent, `-` where nothing was measured."""
    if made is None:
        return "-"
    sign = "+" if signed else ""
    value, low, high = (f"{100 * made[key]:{sign}.1f}" for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def claim_cells(claim: Claim, verdict: Verdict) -> tuple[str, str, str, str]:
    """Id, the claim in short, verdict, and estimate with interval (or why there is none)."""
    found = show_interval(verdict, claim.unit) or verdict.reading.partition(": ")[2]
    return claim.id, claim.short, verdict.verdict, found
