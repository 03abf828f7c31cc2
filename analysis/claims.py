"""The ledger of claims and its verdicts.

A claim is `supported` when its interval lies wholly above the threshold, `contradicted` when
wholly below, and `inconclusive (underpowered)` when it holds the threshold; `not testable here`
when arms, a benchmark or a second seed are missing. Intervals are those of
`Bootstrap.t_interval`, at the rate that Holm grants over all testable claims of the ledger.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from analysis.arms import REFERENCE
from analysis.comparison import accuracy_table, paired
from analysis.errors import UserError
from analysis.statistics import (
    Bootstrap,
    auroc,
    bootstrap_auroc,
    bootstrap_mean,
    bootstrap_trend,
    holm_levels,
    mann_kendall,
)

LEDGER = Path(__file__).parent / "claims.yaml"
Frames = Mapping[str, pl.DataFrame]
Unit = Literal["points", "points per 100 steps", "AUROC"]
VerdictWord = Literal[
    "supported", "contradicted", "inconclusive (underpowered)", "not testable here"
]

MIN_SEEDS = 2
STEPS_OF_A_SLOPE = 100  # as the unit says: points per 100 steps


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Claim(_Part):
    """One line of the ledger, in our words. The claimed direction is always upwards."""

    id: str
    short: str
    statement: str
    source: str
    paper: str
    estimand: str
    query: str
    test: Literal[
        "accuracy_difference", "entropy_auroc", "entropy_auroc_over_nll", "flawed_trend_difference"
    ]
    arms: list[str] = Field(min_length=1)
    benchmark: str | None = None
    threshold: float
    unit: Unit


class Ledger(_Part):
    alpha: float = Field(gt=0, lt=1)
    claims: list[Claim] = Field(min_length=1)


@dataclass(frozen=True)
class Verdict:
    """What this study says about one claim; numbers are None where it cannot be tested."""

    claim: str
    verdict: VerdictWord
    reading: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    level: float | None = None
    p: float | None = None
    smallest_effect: float | None = None
    seeds: int | None = None
    questions: int | None = None
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Finding:
    """A tested claim before its verdict: the estimate, what to say beside it, possible values."""

    made: Bootstrap
    notes: list[str]
    least: float = -1.0
    greatest: float = 1.0


class NotTestableError(Exception):
    """This study lacks what the claim needs; the message says what."""


def load_ledger(path: Path = LEDGER) -> Ledger:
    """Read and check the ledger. Raises UserError naming file, key, value and remedy."""
    try:
        ledger = Ledger.model_validate(yaml.safe_load(path.read_text()))
    except yaml.YAMLError as error:
        raise UserError(f"{path}: no valid YAML: {error}. Mend the line named.") from error
    except ValidationError as error:
        raise UserError("\n".join(_explain(path, item) for item in error.errors())) from error
    ids = [claim.id for claim in ledger.claims]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise UserError(f"{path}: claim {twice[0]!r} is listed twice. Give each its own id.")
    return ledger


def _explain(path: Path, item: Any) -> str:
    key = ".".join(str(part) for part in item["loc"]) or "the file"
    return f"{path}: key `{key}`: {item['msg']}; found {item['input']!r}. Change the ledger."


def judge(ledger: Ledger, frames: Frames) -> list[Verdict]:
    """A verdict for every claim, in ledger order; frames are the answers of the named queries."""
    findings: dict[str, Finding] = {}
    reasons: dict[str, str] = {}
    for claim in ledger.claims:
        try:
            findings[claim.id] = TESTS[claim.test](claim, frames[claim.query])
        except NotTestableError as reason:
            reasons[claim.id] = str(reason)
    tested = [claim for claim in ledger.claims if claim.id in findings]
    p_values = [findings[claim.id].made.p_value(claim.threshold) for claim in tested]
    levels = holm_levels(p_values, ledger.alpha)
    verdicts = {
        claim.id: _verdict(claim, findings[claim.id], p, alpha)
        for claim, p, alpha in zip(tested, p_values, levels, strict=True)
    }
    return [
        verdicts.get(claim.id)
        or Verdict(claim.id, "not testable here", f"Not testable here: {reasons[claim.id]}.")
        for claim in ledger.claims
    ]


def _verdict(claim: Claim, finding: Finding, p: float, alpha: float) -> Verdict:
    made = finding.made
    low, high = np.clip(made.t_interval(alpha), finding.least, finding.greatest).tolist()
    smallest = made.smallest_effect(alpha)
    word: VerdictWord
    bound = f"{claim.threshold:g}"
    if low > claim.threshold:
        word, reading = "supported", f"The whole interval lies above {bound}, as claimed."
    elif high < claim.threshold:
        word, reading = "contradicted", f"The whole interval lies below {bound}, against the claim."
    else:
        word = "inconclusive (underpowered)"
        reading = (
            f"The interval holds {bound}: this study can tell neither way. With its seeds and "
            f"questions it would find an effect of {show_effect(smallest, claim.unit)} "
            f"or more in four of five studies."
        )
    return Verdict(
        claim.id,
        word,
        reading,
        made.value,
        low,
        high,
        1 - alpha,
        p,
        smallest,
        made.seeds,
        made.questions,
        finding.notes,
    )


def show(value: float, unit: Unit) -> str:
    """A number of a claim as people read it: shares become percentage points."""
    if unit == "AUROC":
        return f"{value:.3f}"
    text = f"{100 * value:+.1f}" if value else "0.0"
    return f"{text} {unit}"


def show_effect(size: float, unit: Unit) -> str:
    """The size of an effect, without sign."""
    return show(size, unit).removeprefix("+")


def show_interval(verdict: Verdict, unit: Unit) -> str:
    """`+5.2 points [+1.0, +9.3]`; empty when the claim was not tested."""
    if verdict.value is None or verdict.low is None or verdict.high is None:
        return ""
    return _with_interval(verdict.value, verdict.low, verdict.high, unit)


def _with_interval(value: float, low: float, high: float, unit: Unit) -> str:
    bounds = (show(bound, unit).removesuffix(unit).strip() for bound in (low, high))
    return f"{show(value, unit)} [{', '.join(bounds)}]"


def _accuracy_difference(claim: Claim, accuracy: pl.DataFrame) -> Finding:
    first, second = _two_arms(claim)
    if claim.benchmark is None:
        raise ValueError(f"claim {claim.id}: test {claim.test} needs a benchmark")
    rows = accuracy.filter(pl.col("benchmark") == claim.benchmark)
    if rows.is_empty():
        raise NotTestableError(f"the study has no benchmark `{claim.benchmark}`")
    _need(claim, rows)
    table = paired(
        accuracy_table(rows, first, claim.benchmark), accuracy_table(rows, second, claim.benchmark)
    )
    by_seed = ", ".join(f"{100 * np.nanmean(row):+.1f}" for row in table.values)
    try:
        return Finding(bootstrap_mean(table.values), [f"By seed: {by_seed} points."])
    except ValueError as error:
        raise NotTestableError(str(error)) from error


def _entropy_rows(claim: Claim, rows: pl.DataFrame) -> pl.DataFrame:
    _need(claim, rows)
    rows = rows.filter(pl.col("arm") == claim.arms[0])
    if rows["chain_valid"].n_unique() < 2:
        missing = "flawed" if rows["chain_valid"].all() else "valid"
        raise NotTestableError(f"no right answer has a {missing} chain")
    return rows


def _strata(rows: pl.DataFrame, *more: str) -> np.ndarray:
    """Strata inside one seed: k and window, so that training time cannot pass for separation."""
    return rows.select("bucket", "window_start", *more).hash_rows().to_numpy()


def _separation(rows: pl.DataFrame, score: str) -> Bootstrap:
    """AUROC of a column for a flawed chain, inside one seed, k and window of steps."""
    try:
        return bootstrap_auroc(
            rows[score].to_numpy(),
            ~rows["chain_valid"].to_numpy(),
            questions=rows["question"].to_numpy(),
            seeds=rows["seed"].to_numpy(),
            strata=_strata(rows),
        )
    except ValueError as error:
        raise NotTestableError(str(error)) from error


def _entropy_auroc(claim: Claim, rows: pl.DataFrame) -> Finding:
    rows = _entropy_rows(claim, rows)
    made = _separation(rows, "mean_entropy")
    flawed = ~rows["chain_valid"].to_numpy()
    by_level = auroc(rows["mean_entropy"], flawed, _strata(rows, "seed", "level"))
    length = auroc(rows["length"], flawed, _strata(rows, "seed"))
    by_seed = ", ".join(f"{value:.3f}" for value in made.by_seed)
    notes = [
        f"By seed: {by_seed}.",
        f"{rows.height} right answers, {int(flawed.sum())} of them flawed ({_part(rows)}).",
        f"With the number of steps of the question held fixed as well: {by_level:.3f}; response "
        f"length alone: {length:.3f} (0.5 says nothing, below 0.5: flawed ones are shorter).",
    ]
    return Finding(made, notes, least=0.0)


def _part(rows: pl.DataFrame) -> str:
    one_in = rows["one_in"][0]
    return "all there are" if one_in == 1 else f"one in {one_in} of all, by hash of the id"


def _entropy_auroc_over_nll(claim: Claim, rows: pl.DataFrame) -> Finding:
    rows = _entropy_rows(claim, rows)
    entropy, nll = _separation(rows, "mean_entropy"), _separation(rows, "nll")
    note = f"Entropy {entropy.value:.3f}, negative log-probability {nll.value:.3f}."
    return Finding(entropy.minus(nll), [note])


def _flawed_trend_difference(claim: Claim, counts: pl.DataFrame) -> Finding:
    first, second = _two_arms(claim)
    counts = counts.filter(pl.col("seed").is_in(_need(claim, counts)))
    try:
        times, arrays = _flawed_counts(counts, (first, second))
        # Both arms over the same windows and questions: their draws are the same, so they pair.
        trends = {arm: bootstrap_trend(*arrays[arm], times) for arm in arrays}
        made = trends[first].minus(trends[second]).scaled(STEPS_OF_A_SLOPE)
    except ValueError as error:
        raise NotTestableError(str(error)) from error
    notes = [_own_trend(counts, arm, claim.unit) for arm in (first, second, REFERENCE)]
    notes.append(
        f"The test compares the two replay arms only. A snowball needs a rise that {REFERENCE} "
        "lacks. Own slopes carry 95 % intervals, not adjusted for several comparisons."
    )
    return Finding(made, notes, least=-inf, greatest=inf)


def _flawed_counts(
    counts: pl.DataFrame, arms: tuple[str, ...]
) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Starts of windows [W], and hits and trials [S, W, Q] of each arm.

    Windows in which a seed of an arm has no trial are left out.
    """
    rows = counts.filter(pl.col("arm").is_in(arms))
    axes = [rows[name].unique().sort().to_list() for name in ("seed", "window_start", "question")]
    hits, trials = (np.zeros((len(arms), *map(len, axes))) for _ in range(2))
    places = [{value: at for at, value in enumerate(axis)} for axis in ([*arms], *axes)]
    cells = tuple(
        [place[value] for value in rows[name]]
        for place, name in zip(places, ("arm", "seed", "window_start", "question"), strict=True)
    )
    hits[cells], trials[cells] = rows["flawed"].to_numpy(), rows["right_fresh"].to_numpy()
    kept = (trials.sum(axis=3) > 0).all(axis=(0, 1))
    arrays = {arm: (hits[at][:, kept], trials[at][:, kept]) for at, arm in enumerate(arms)}
    return np.array(axes[1], dtype=float)[kept], arrays


def _own_trend(counts: pl.DataFrame, arm: str, unit: Unit) -> str:
    try:
        times, arrays = _flawed_counts(counts, (arm,))
        hits, trials = arrays[arm]
        trend = bootstrap_trend(hits, trials, times).scaled(STEPS_OF_A_SLOPE)
    except ValueError:
        return f"{arm}: no trend in this study."
    share = hits.sum(axis=(0, 2)) / trials.sum(axis=(0, 2))
    return (
        f"{arm}: own slope {_with_interval(trend.value, *trend.t_interval(), unit)}; flawed share "
        f"{100 * share[0]:.1f} % in the first window, {100 * share[-1]:.1f} % in the last, "
        f"Mann-Kendall tau {mann_kendall(share).tau:+.2f}."
    )


TESTS: dict[str, Callable[[Claim, pl.DataFrame], Finding]] = {
    "accuracy_difference": _accuracy_difference,
    "entropy_auroc": _entropy_auroc,
    "entropy_auroc_over_nll": _entropy_auroc_over_nll,
    "flawed_trend_difference": _flawed_trend_difference,
}


def _two_arms(claim: Claim) -> tuple[str, str]:
    if len(claim.arms) != 2:
        raise ValueError(f"claim {claim.id}: test {claim.test} compares two arms")
    return claim.arms[0], claim.arms[1]


def _need(claim: Claim, rows: pl.DataFrame) -> list[int]:
    """The seeds that every arm of the claim has; NotTestableError when they are too few."""
    seeds: set[int] | None = None
    for arm in claim.arms:
        found = set(rows.filter(pl.col("arm") == arm)["seed"].drop_nulls())
        if not found:
            raise NotTestableError(f"the study has no rows of arm `{arm}`")
        seeds = found if seeds is None else seeds & found
    if len(seeds or ()) < MIN_SEEDS:
        raise NotTestableError(
            f"it needs {MIN_SEEDS} seeds or more in {' and '.join(claim.arms)}, "
            f"this study has {len(seeds or ())}"
        )
    return sorted(seeds or ())
