"""The closing table as text: one row an arm, in percent, every accuracy with its interval.

In and out of distribution may each be several benchmarks: see `analysis.domains`. They are in a
table of their own (`benchmark_rows`) where one of the two is.
"""

from typing import Any

from analysis.arms import arm_order
from analysis.claims import Claim, Verdict, show_interval
from analysis.domains import DOMAINS, NAMES

HEADER = (
    "arm",
    "seeds",
    "accuracy",
    "out of distribution",
    "with signal",
    "flawed",
    "time a run",
)
ACCURACY = "Accuracy in % with its 95 % interval over questions{seeds}; tested: the {tested}."
AVERAGE = " Accuracy is the mean over {domains}, each benchmark weighing the same."
TRAINING = (
    " With signal: training groups that hold right and wrong answers. Flawed: of the right answers "
    "sampled in training, those whose chain is not valid. Time: training only."
)
PARTIAL = (
    "Partial study: arms may differ in the seeds that are finished, and those to come may change "
    "every number. "
)
NOT_RUN: dict[str, Any] = {"seeds": [], "domains": {}, "training": None}
CHOSEN_BY_TESTS = "checkpoint chosen by test questions"
UNADJUSTED = (
    "Intervals are 95 % each, not adjusted for several comparisons; those of the verdicts are."
)
VERDICTS = (
    "Intervals of claims are adjusted by Holm for all claims tested: they are wider than the 95 % "
    "of tables and figures."
)


def closing_rows(comparison: dict[str, Any]) -> list[list[str]]:
    """Cells as in HEADER for every arm of a `comparison.json`, those without a run included."""
    measured = {entry["arm"]: entry for entry in comparison["arms"]}
    planned = comparison["planned"]
    return [
        _row(arm, measured.get(arm, NOT_RUN), planned.get(arm))
        for arm in arm_order([*measured, *planned])
    ]


def seeds_finished(comparison: dict[str, Any]) -> int:
    """Seeds of the arm that has most of them."""
    return max((len(entry["seeds"]) for entry in comparison["arms"]), default=0)


def progress(comparison: dict[str, Any]) -> str:
    """Whether the study is whole: `whole, all 12 runs` or `partial, 7 of 12 runs`."""
    finished, planned = _runs(comparison)
    if is_partial(comparison):
        return f"partial, {finished} of {planned} runs"
    return f"whole, all {planned} runs"


def is_partial(comparison: dict[str, Any]) -> bool:
    finished, planned = _runs(comparison)
    return finished < planned


def _runs(comparison: dict[str, Any]) -> tuple[int, int]:
    """How many runs are finished, and how many are planned."""
    finished = sum(len(entry["seeds"]) for entry in comparison["arms"])
    return finished, sum(comparison["planned"].values())


def meaning(comparison: dict[str, Any]) -> str:
    """A few sentences on what the numbers of the closing table are."""
    return accuracy_meaning(comparison) + TRAINING


def accuracy_meaning(comparison: dict[str, Any]) -> str:
    """The same on its accuracies alone."""
    start = PARTIAL if is_partial(comparison) else ""
    most = seeds_finished(comparison)
    over = " only, as there is one seed" if most <= 1 else " and seeds; base: over questions only"
    several = [
        f"{len(comparison['domains'][name])} benchmarks {NAMES[name]}"
        for name in DOMAINS
        if len(comparison["domains"][name]) > 1
    ]
    average = AVERAGE.format(domains=" and over ".join(several)) if several else ""
    return start + ACCURACY.format(seeds=over, tested=comparison["tested"]) + average


def tested(checkpoint: str, validated_on_tests: bool) -> str:
    """Which checkpoint the tests are of, in words; checkpoint: `final` or `best`.

    validated_on_tests: validation questions may be test questions.
    """
    if checkpoint == "final":
        return "last checkpoint"
    if validated_on_tests:
        return CHOSEN_BY_TESTS
    return "checkpoint of the best validation"


def _row(arm: str, entry: dict[str, Any], planned: int | None) -> list[str]:
    training = entry["training"] or {}
    return [
        arm,
        _seeds(len(entry["seeds"]), planned),
        *(interval(entry["domains"].get(name, {}).get("accuracy")) for name in DOMAINS),
        percent(training.get("signal_share")),
        percent(training.get("flawed_share")),
        duration(training.get("seconds")),
    ]


SCORES_HEADER = (
    "benchmark",
    "arm",
    "questions",
    "k",
    "avg@k",
    "pass@k",
    "maj@k",
    "answered",
    "right if so",
    "cut",
    "tokens",
)
SCORES_MEANING = (
    "k: the least graded samples of a question. avg@k: right ones of all graded samples, the mean "
    "over questions, in % with its 95 % interval. pass@k: at least one of k right. maj@k: the most "
    "frequent answer of k is right; ties share. Answered: samples from which an answer could be "
    "read, and how many of those are right. Cut: samples at the length limit."
)


def scores_meaning(comparison: dict[str, Any]) -> str:
    """What the cells of `benchmark_rows` are, and what the grader could not judge."""
    ungraded = [
        f"{name} {entry['arm']} {count:,}"
        for entry in comparison["arms"]
        for name, found in entry["scores"].items()
        if (count := found["ungraded"])
    ]
    if not ungraded:
        return SCORES_MEANING
    return f"{SCORES_MEANING} Ungraded samples, in none of this: {', '.join(ungraded)}."


def has_many_benchmarks(comparison: dict[str, Any]) -> bool:
    """Whether the columns of the closing table do not tell the benchmarks apart."""
    return any(len(names) > 1 for names in comparison["domains"].values())


def benchmark_rows(comparison: dict[str, Any]) -> list[list[str]]:
    """Cells as in SCORES_HEADER for every benchmark and arm of a `comparison.json`."""
    return [
        _score_row(name, entry["arm"], entry["scores"][name])
        for domain in DOMAINS
        for name in comparison["domains"][domain]
        for entry in comparison["arms"]
        if name in entry["scores"]
    ]


def _score_row(benchmark: str, arm: str, found: dict[str, Any]) -> list[str]:
    several = found["k"] > 1
    return [
        benchmark,
        arm,
        str(found["questions"]),
        str(found["k"]),
        interval(found["avg_at_k"]),
        interval(found["pass_at_k"]) if several else "-",
        interval(found["maj_at_k"]) if several else "-",
        percent(found["answered"]),
        percent(found["accuracy_answered"]),
        percent(found["truncated"]),
        "-" if found["tokens"] is None else f"{found['tokens']:.0f}",
    ]


def _seeds(finished: int, planned: int | None) -> str:
    """`3` when all are finished, else `2 of 3`; `-` for the base model, which has no seeds."""
    if planned is None:
        return "-"
    return str(planned) if finished == planned else f"{finished} of {planned}"


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


def tested_claims(
    verdicts: list[tuple[Claim, Verdict]],
) -> tuple[list[tuple[Claim, Verdict]], str]:
    """The claims that a study tested, and a sentence about those that it could not.

    Statements that are counted, not estimated, say nothing about the study: they are left out.
    """
    estimated = [pair for pair in verdicts if pair[0].unit != "counted"]
    tested = [pair for pair in estimated if pair[1].verdict != "not testable here"]
    names = ", ".join(claim.id for claim, _ in estimated if (claim, _) not in tested)
    rest = f"Not testable here: {names}." if names else ""
    return tested, f"{rest} `exgrpo claims` says why, and has the whole ledger.".strip()


def claim_cells(claim: Claim, verdict: Verdict) -> tuple[str, str, str, str]:
    """Id, the claim in short, verdict, and estimate with interval (or why there is none)."""
    found = show_interval(verdict, claim.unit) or verdict.reading.partition(": ")[2]
    return claim.id, claim.short, verdict.verdict, found
