"""Tests of claims that compare the accuracy of two arms, paired by seed and question."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from analysis.arms import BASE
from analysis.claims.finding import (
    Finding,
    Frames,
    NotTestableError,
    answer_of,
    frame_of,
    shared_seeds,
    two_arms,
)
from analysis.claims.ledger import Claim
from analysis.claims.show import with_interval
from analysis.comparison import AccuracyTable, accuracy_table, paired
from analysis.statistics import Bootstrap, bootstrap_mean

BY_RUN = ("arm", "seed")


def accuracy_difference(claim: Claim, frames: Frames) -> Finding:
    """Accuracy of the first arm minus that of the second, on one benchmark."""
    return _difference(claim, _benchmark_rows(claim, frames))


def accuracy_by_extraction(claim: Claim, frames: Frames) -> Finding:
    """The same; its notes split it into answers that can be read, and right ones among those."""
    rows = _benchmark_rows(claim, frames)
    finding = _difference(claim, rows)
    read = _pairs(rows.with_columns(correct="extracted"), claim).values
    notes = [
        f"Answers that can be read: {_interval(bootstrap_mean(read))}.",
        f"Right ones among those that can be read: {_given_extraction(claim, rows)}.",
    ]
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def masked_difference(claim: Claim, frames: Frames) -> Finding:
    """The same between arms with as many groups a step; a note has the arms without that."""
    rows = _benchmark_rows(claim, frames)
    finding = _difference(claim, rows)
    plain = claim.model_copy(update={"arms": [a.removesuffix("_matched") for a in claim.arms]})
    names = " minus ".join(plain.arms)
    try:
        unmatched = _interval(_difference(plain, rows).made)
    except NotTestableError as reason:
        unmatched = f"not here, {reason}"
    note = f"As in the paper, with as many groups as there are ({names}): {unmatched}."
    return Finding(finding.made, [*finding.notes, note], pairs=finding.pairs)


def weak_base_difference(claim: Claim, frames: Frames) -> Finding:
    """The same, where the base model answers less than `given.base_below` of the benchmark."""
    rows = _benchmark_rows(claim, frames)
    bound = float(claim.given["base_below"])
    base = rows.filter(pl.col("arm") == BASE)
    if base.is_empty():
        raise NotTestableError("the base model was not tested")
    share = _share(base)
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
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def retirement_difference(claim: Claim, frames: Frames) -> Finding:
    """The same; a note counts how many retired questions were lost again, in both arms."""
    finding = _difference(claim, _benchmark_rows(claim, frames))
    flips = frame_of(claim.beside[0], frames)
    notes = []
    for arm in claim.arms:
        rows = flips.filter(pl.col("arm") == arm)
        seen, lost = int(rows["retired_revisited"].sum()), int(rows["retired_lost"].sum())
        share = f"{100 * lost / seen:.1f} %" if seen else "-"
        notes.append(
            f"{arm}: of {seen} retired questions asked again, {lost} were half wrong or worse "
            f"then ({share})."
        )
    return Finding(finding.made, [*finding.notes, *notes], pairs=finding.pairs)


def accuracy_at_equal_cost(claim: Claim, frames: Frames) -> Finding:
    """Validation accuracy of two arms where both have cost as much: `given.cost`, a column.

    In each seed that is the lesser of the two arms' costs at their ends. In between two measured
    steps, a question's accuracy is interpolated linearly in the cost.
    """
    arms, cost = two_arms(claim), str(claim.given["cost"])
    rows, costs = answer_of(claim, frames), frame_of(claim.beside[0], frames)
    seeds = [seed for seed in shared_seeds(claim, rows) if seed in shared_seeds(claim, costs)]
    ends, tables = [], []
    for seed in seeds:
        paths = {arm: _of(costs, arm, seed).drop_nulls(cost).sort("step") for arm in arms}
        if any(path.is_empty() for path in paths.values()):
            raise NotTestableError(f"the log has no `{cost}`")
        end = min(path[cost][-1] for path in paths.values())
        ends.append(end)
        tables.append([_at_cost(_of(rows, arm, seed), paths[arm], cost, end) for arm in arms])
    questions = sorted(set.intersection(*(set(part) for table in tables for part in table)))
    if not questions:
        raise NotTestableError("no question was validated in every run")
    pairs = np.array([[first[q] - second[q] for q in questions] for first, second in tables])
    shown = ", ".join(f"{end:,.0f}" for end in ends)
    note = f"Compared at {shown} {cost.replace('_', ' ')}, one number a seed."
    return Finding(_mean(pairs), [_by_seed(pairs), note], pairs=pairs)


def _at_cost(
    validation: pl.DataFrame, path: pl.DataFrame, cost: str, at: float
) -> dict[str, float]:
    """A run's accuracy by question where it has cost so much."""
    place = dict(path.select("step", cost).iter_rows())
    rows = validation.filter(pl.col("step").is_in(list(place)) & (pl.col("samples") > 0))
    return {
        str(question): float(
            np.interp(
                at,
                [place[step] for step in part["step"]],
                (part["correct"] / part["samples"]).to_list(),
            )
        )
        for (question,), part in rows.sort("step").group_by("question", maintain_order=True)
    }


def _benchmark_rows(claim: Claim, frames: Frames) -> pl.DataFrame:
    if claim.benchmark is None:
        raise ValueError(f"claim {claim.id}: test {claim.test} needs a benchmark")
    rows = answer_of(claim, frames).filter(pl.col("benchmark") == claim.benchmark)
    if rows.is_empty():
        raise NotTestableError(f"the study has no benchmark `{claim.benchmark}`")
    return rows


def _difference(claim: Claim, rows: pl.DataFrame) -> Finding:
    two_arms(claim)
    shared_seeds(claim, rows)
    pairs = _pairs(rows, claim).values
    return Finding(_mean(pairs), [_by_seed(pairs)], pairs=pairs)


def _pairs(rows: pl.DataFrame, claim: Claim) -> AccuracyTable:
    first, second = (accuracy_table(rows, arm, claim.benchmark or "") for arm in two_arms(claim))
    return paired(first, second)


def _mean(pairs: np.ndarray) -> Bootstrap:
    try:
        return bootstrap_mean(pairs)
    except ValueError as error:
        raise NotTestableError(str(error)) from error


def _by_seed(pairs: np.ndarray) -> str:
    by_seed: Sequence[float] = [float(np.nanmean(row)) for row in pairs]
    return f"By seed: {', '.join(f'{100 * value:+.1f}' for value in by_seed)} points."


def _given_extraction(claim: Claim, rows: pl.DataFrame) -> str:
    """The difference of right answers / readable answers, with its interval over seeds."""
    shares = _shares(rows, "extracted")
    seeds = shared_seeds(claim, rows)
    first, second = ([shares[arm, seed] for seed in seeds] for arm in claim.arms)
    made = _mean((np.array(first) - np.array(second))[:, None])
    return _interval(made)


def _shares(rows: pl.DataFrame, of: str = "samples") -> dict[tuple[str, int | None], float]:
    """Right samples of each arm and seed, as a share of the samples or of those in a column."""
    totals = rows.group_by(BY_RUN).agg(pl.col("correct").sum(), pl.col(of).sum())
    return {
        (arm, seed): correct / whole if whole else float("nan")
        for arm, seed, correct, whole in totals.select(*BY_RUN, "correct", of).iter_rows()
    }


def _share(rows: pl.DataFrame) -> float:
    return float(rows["correct"].sum() / max(int(rows["samples"].sum()), 1))


def _interval(made: Bootstrap) -> str:
    shown = with_interval(made.value, *made.interval(), "points")
    return f"{shown}, 95 %, not adjusted for several comparisons"


def _of(rows: pl.DataFrame, arm: str, seed: int) -> pl.DataFrame:
    return rows.filter((pl.col("arm") == arm) & (pl.col("seed") == seed))
