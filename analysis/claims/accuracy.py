"""Tests of claims that compare the accuracy of two arms, paired by seed and question."""

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from analysis.arms import BASE
from analysis.budgets import EqualBudget, NotComparableError, at_equal_budget, with_budgets
from analysis.claims.finding import (
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    frame_of,
    shared_seeds,
    two_arms,
    varies,
)
from analysis.claims.ledger import Claim
from analysis.claims.show import show, with_interval
from analysis.claims.training import NOISY, late_entropy
from analysis.comparison import AccuracyTable, accuracy_table, domain_table, paired
from analysis.domains import NAMES, balanced, weights
from analysis.statistics import Bootstrap, Floats, bootstrap_mean

BY_RUN = ("arm", "seed")


def accuracy_difference(claim: Claim, frames: Frames) -> Finding:
    """Accuracy of the first arm minus that of the second, in or out of distribution."""
    return _difference(claim, _domain_rows(claim, frames))


def accuracy_by_extraction(claim: Claim, frames: Frames) -> Finding:
    """The same; its notes split it into answers that can be read, and right ones among those."""
    rows = _domain_rows(claim, frames)
    finding = _difference(claim, rows)
    read = _pairs(rows.with_columns(correct="extracted"), claim)
    notes = [
        f"Answers that can be read: {_interval(_mean_of(read))}.",
        f"Right ones among those that can be read: {_given_extraction(claim, rows)}.",
    ]
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def masked_difference(claim: Claim, frames: Frames) -> Finding:
    """The same between arms with as many groups a step; a note has the arms without that."""
    rows = _domain_rows(claim, frames)
    finding = _difference(claim, rows)
    plain = claim.model_copy(update={"arms": [a.removesuffix("_matched") for a in claim.arms]})
    names = " minus ".join(plain.arms)
    try:
        unmatched = _interval(_difference(plain, rows).made)
    except NotTestableError as reason:
        unmatched = f"not here, {reason}"
    notes = [
        f"As in the paper, with as many groups as there are ({names}): {unmatched}.",
        _updated_groups(claim, frame_of("run_updates", frames)),
    ]
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def _updated_groups(claim: Claim, rows: pl.DataFrame) -> str:
    """Whether the arms did learn from as many groups, which too few of a kind can prevent."""
    means = dict(rows.group_by("arm").agg(pl.col("updated_groups").mean()).iter_rows())
    shown = ", ".join(f"{arm} {means[arm]:.1f}" for arm in claim.arms if means.get(arm) is not None)
    return f"Groups a step that were learned from: {shown or 'not logged'}."


def continued_difference(claim: Claim, frames: Frames) -> Finding:
    """The same; a note has each arm against the model that it continues, where that was tested."""
    finding = _difference(claim, _domain_rows(claim, frames))
    rows = frame_of("validation_accuracy", frames).with_columns(benchmark=pl.lit("validation"))
    notes = [
        f"{arm} minus the model it continues, on validation: {_gained(rows, arm)}."
        for arm in claim.arms
    ]
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def _gained(rows: pl.DataFrame, arm: str) -> str:
    """Validation accuracy at an arm's last step minus that at step 0, with its interval."""
    rows = rows.filter(pl.col("arm") == arm)
    last = rows.filter(pl.col("step") == pl.col("step").max().over("seed"))
    start, end = (
        accuracy_table(part, arm, "validation") for part in (rows.filter(pl.col("step") == 0), last)
    )
    try:
        return _interval(_mean_of(paired(end, start)))
    except NotTestableError:
        return "its start was not logged"


def weak_base_difference(claim: Claim, frames: Frames) -> Finding:
    """The same, where the base model answers less than `given.base_below` of the tests."""
    rows = _domain_rows(claim, frames)
    bound = float(claim.given["base_below"])
    base = rows.filter(pl.col("arm") == BASE)
    if base.is_empty():
        raise NotTestableError("the base model was not tested")
    share = next(iter(_shares(base).values()))
    if math.isnan(share):
        raise NotTestableError("the grader could judge no answer of the base model to some test")
    if share >= bound:
        raise NotTestableError(
            f"it needs a base model below {100 * bound:g} % right, this one has {100 * share:.1f} %"
        )
    finding = _difference(claim, rows)
    by_run = _shares(rows)
    notes = [f"Base model: {100 * share:.1f} % right."]
    for arm in claim.arms:
        ends = [by_run[arm, seed] for seed in shared_seeds(claim, rows)]
        collapsed = sum(end <= share for end in ends)
        notes.append(f"{arm}: {collapsed} of {len(ends)} runs end no better than the base model.")
    notes.append(_course(claim, frames))
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def _course(claim: Claim, frames: Frames) -> str:
    """Late entropy and the length of responses of both arms, where a collapse would show."""
    entropies = frame_of("buffer_dynamics", frames)
    lengths = frame_of("length_truncation", frames)
    shown = []
    for arm in claim.arms:
        runs = entropies.filter(pl.col("arm") == arm).partition_by("seed")
        late = [value for run in runs if (value := late_entropy(run)) is not None]
        tokens = lengths.filter(pl.col("arm") == arm)
        if late and tokens.height:
            length = np.average(tokens["length"], weights=tokens["trajectories"])
            shown.append(f"{arm} {np.mean(late):.3f} nat/token and {length:.1f} tokens")
        else:
            shown.append(f"{arm} not logged")
    return f"Entropy late in training, and response length over all of it: {'; '.join(shown)}."


def retirement_difference(claim: Claim, frames: Frames) -> Finding:
    """The same; a note has how often a later visit finds a retired question lost, in both arms."""
    finding = _difference(claim, _domain_rows(claim, frames))
    later = frame_of("retired_later", frames)
    notes = [_lost(arm, later.filter(pl.col("arm") == arm)) for arm in claim.arms]
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def _lost(arm: str, later: pl.DataFrame) -> str:
    """The rate of a later visit, for how many there are differs between arms."""
    retired, others = (later.filter(pl.col("retired") == kind) for kind in (True, False))
    if retired.is_empty():
        return f"{arm}: no retired question was asked again."
    lost, like = (_percent(part, "lost", "weight") for part in (retired, others))
    return (
        f"{arm}: of {retired['visits'].sum()} later visits of retired questions {lost:.1f} % were "
        f"half wrong or worse; of other questions' visits at the same time {like:.1f} %."
    )


def _percent(rows: pl.DataFrame, part: str, whole: str) -> float:
    return 100 * float(rows[part].sum()) / float(rows[whole].sum())


def accuracy_at_equal_cost(claim: Claim, frames: Frames) -> Finding:
    """Validation accuracy of two arms where both have cost as much: `given.cost`, a column.

    Where each seed is compared, and how, is told in `analysis.budgets`.
    """
    rows = with_budgets(answer_of(claim, frames), frame_of(claim.beside[0], frames))
    shared_seeds(claim, rows)
    cost = str(claim.given["cost"])
    try:
        found = at_equal_budget(rows, *two_arms(claim), cost)
    except NotComparableError as reason:
        raise NotTestableError(str(reason)) from reason
    shown = ", ".join(f"{end:,.0f}" for end in found.spent)
    note = f"Compared at {shown} {cost.replace('_', ' ')}, one number a seed."
    steps = "; ".join(
        f"{arm} at steps {', '.join(f'{step:.0f}' for step in _steps(rows, arm, found, cost))}"
        for arm in claim.arms
    )
    notes = [note, f"That is {steps}.", *([NOISY] if cost == "seconds" else [])]
    pairs = found.differences.values
    made = _mean(pairs)
    return Finding(made, [_by_seed(made), *notes], pairs=pairs)


def _steps(rows: pl.DataFrame, arm: str, found: EqualBudget, cost: str) -> list[float]:
    """The steps at which an arm had spent what each seed is compared at."""
    path = rows.filter(pl.col("arm") == arm).unique(["seed", "step"]).sort("step")
    by_seed = [path.filter(pl.col("seed") == seed) for seed in found.differences.seeds]
    return [
        float(np.interp(end, part[cost], part["step"]))
        for end, part in zip(found.spent, by_seed, strict=True)
    ]


def _domain_rows(claim: Claim, frames: Frames) -> pl.DataFrame:
    if claim.domain is None:
        raise ValueError(f"claim {claim.id}: test {claim.test} needs a domain")
    rows = answer_of(claim, frames).filter(pl.col("domain") == claim.domain)
    if rows.is_empty():
        raise NotTestableError(f"the study has no benchmark {NAMES[claim.domain]}")
    return rows


def _difference(claim: Claim, rows: pl.DataFrame) -> Finding:
    two_arms(claim)
    shared_seeds(claim, rows)
    found = _pairs(rows, claim)
    made = _mean_of(found)
    names = sorted(found.tests)
    over = [f"Mean over {len(names)} benchmarks: {', '.join(names)}."] if len(names) > 1 else []
    return Finding(made, [_by_seed(made), *over], pairs=found.values * weights(found.benchmarks))


def _pairs(rows: pl.DataFrame, claim: Claim) -> AccuracyTable:
    """Differences by seed and question; NotTestableError where a benchmark has none."""
    tables = [domain_table(rows, arm, claim.domain or "in") for arm in two_arms(claim)]
    found = paired(*tables).complete()
    if missing := sorted(set(rows["benchmark"]) - found.tests):
        raise NotTestableError(
            f"no question of {missing[0]} has a value in every seed of both arms"
        )
    return found


def _mean_of(pairs: AccuracyTable) -> Bootstrap:
    """Over benchmarks, of which each weighs the same, of the mean over their questions."""
    whole = pairs.complete()
    return _mean(whole.values, whole.benchmarks)


def _mean(pairs: Floats, benchmarks: Sequence[str] = ()) -> Bootstrap:
    try:
        return bootstrap_mean(balanced(pairs, list(benchmarks)))
    except ValueError as error:
        raise NotTestableError(str(error)) from error


def _by_seed(made: Bootstrap) -> str:
    return f"By seed: {', '.join(f'{100 * value:+.1f}' for value in made.by_seed)} points."


def _given_extraction(claim: Claim, rows: pl.DataFrame) -> str:
    """The difference of right answers / readable answers, with its interval over seeds."""
    shares = _shares(rows, "extracted")
    seeds = shared_seeds(claim, rows)
    for arm in claim.arms:
        for seed in seeds:
            if math.isnan(shares[arm, seed]):
                return f"not here, no answer of seed {seed} of {arm} can be read"
    first, second = (np.array([shares[arm, seed] for seed in seeds]) for arm in claim.arms)
    made = _mean((first - second)[:, None])
    return (
        f"{_interval(made)}, over seeds only; it compares different answers, for each arm has its "
        f"own that can be read"
    )


def _shares(rows: pl.DataFrame, of: str = "samples") -> dict[tuple[str, int | None], float]:
    """Right samples of each arm and seed, as a share of the samples or of those in a column.

    Of several benchmarks the mean share; NaN where one of them has none to take the share of.
    """
    totals = rows.group_by(*BY_RUN, "benchmark").agg(pl.col("correct").sum(), pl.col(of).sum())
    shares = totals.with_columns(
        share=pl.when(pl.col(of) > 0).then(pl.col("correct") / pl.col(of)).otherwise(float("nan"))
    )
    means = shares.sort("benchmark").group_by(BY_RUN).agg(pl.col("share").mean())
    return {(arm, seed): share for arm, seed, share in means.iter_rows()}


def _interval(made: Bootstrap) -> str:
    if not varies(made):
        return f"{show(made.value, 'points')}, and nothing varies that an interval could be of"
    shown = with_interval(made.value, *made.interval(), "points")
    return f"{shown}, 95 %, not adjusted for several comparisons"
