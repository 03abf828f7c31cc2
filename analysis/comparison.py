"""Arms against each other: accuracy with its interval, at the end and over training."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from analysis.arms import BASE, REFERENCE, arm_order
from analysis.statistics import REPLICATES, Floats, avg_at_k, bootstrap_mean

LEVEL = 0.95
CURVE_REPLICATES = 2_000  # a step of a learning curve; drawn, not printed


@dataclass(frozen=True)
class AccuracyTable:
    """values [S, Q]: accuracy (avg@k) by seed and question; NaN where a question has no sample."""

    values: Floats
    seeds: list[int | None]
    questions: list[str]


@dataclass(frozen=True)
class Estimate:
    """A mean with its interval; by_seed holds the mean of each seed, in seed order."""

    value: float
    low: float
    high: float
    level: float
    se: float
    seeds: int
    questions: int
    by_seed: list[float]


def accuracy_table(frame: pl.DataFrame, arm: str, benchmark: str) -> AccuracyTable:
    """The accuracy of one arm from the rows of query `arm_accuracy`; empty if there are none."""
    return _table(frame.filter((pl.col("arm") == arm) & (pl.col("benchmark") == benchmark)))


def _table(rows: pl.DataFrame) -> AccuracyTable:
    """Rows of one arm and test, one a seed and question, as a table."""
    seeds = rows["seed"].unique().sort().to_list()
    questions = rows["question"].unique().sort().to_list()
    values = np.full((len(seeds), len(questions)), np.nan)
    seed_at = {seed: place for place, seed in enumerate(seeds)}
    question_at = {question: place for place, question in enumerate(questions)}
    values[
        [seed_at[seed] for seed in rows["seed"]],
        [question_at[question] for question in rows["question"]],
    ] = avg_at_k(rows["correct"].to_numpy(), rows["samples"].to_numpy())
    return AccuracyTable(values, seeds, questions)


def paired(first: AccuracyTable, second: AccuracyTable) -> AccuracyTable:
    """first - second over the seeds and questions that both have."""
    seeds = [seed for seed in first.seeds if seed in second.seeds]
    questions = sorted(set(first.questions) & set(second.questions))

    def part(table: AccuracyTable) -> Floats:
        rows = [table.seeds.index(seed) for seed in seeds]
        place = {question: at for at, question in enumerate(table.questions)}
        return table.values[np.ix_(rows, [place[question] for question in questions])]

    return AccuracyTable(part(first) - part(second), seeds, questions)


def estimate(
    table: AccuracyTable,
    least: float = 0.0,
    level: float = LEVEL,
    replicates: int = REPLICATES,
) -> Estimate | None:
    """Mean over seeds and questions, its interval cut to `least` .. 1; None without a value."""
    complete = table.values[:, ~np.isnan(table.values).any(axis=0)]
    if complete.size == 0:
        return None
    made = bootstrap_mean(complete, replicates)
    low, high = (min(max(bound, least), 1.0) for bound in made.interval(level))
    by_seed = complete.mean(axis=1).tolist()
    return Estimate(made.value, low, high, level, made.se, made.seeds, made.questions, by_seed)


def learning_curves(validation: pl.DataFrame) -> dict[str, list[dict[str, Any]]]:
    """Validation accuracy of every arm at each measured step, with its interval.

    validation: rows of `validation_accuracy`. Only seeds that reached the last step of their arm
    count, so that every point of a curve is over the same seeds.
    """
    curves: dict[str, list[dict[str, Any]]] = {}
    for arm in arm_order(validation["arm"].to_list()):
        rows = validation.filter(pl.col("arm") == arm)
        whole = rows.filter(pl.col("step") == rows["step"].max())["seed"].unique()
        curves[arm] = [
            {"step": step} | asdict(made)
            for (step,), part in rows.filter(pl.col("seed").is_in(whole.to_list()))
            .sort("step")
            .group_by("step", maintain_order=True)
            if (made := estimate(_table(part), replicates=CURVE_REPLICATES))
        ]
    return curves


def compare(
    accuracy: pl.DataFrame, summary: pl.DataFrame, validation: pl.DataFrame
) -> dict[str, Any]:
    """Every arm's accuracy and its difference to the reference arm, ready for JSON.

    accuracy: rows of `arm_accuracy`; summary: rows of `arm_summary`; validation: rows of
    `validation_accuracy`, for the learning curves.
    """
    arms = arm_order(accuracy["arm"].to_list())
    benchmarks = sorted(accuracy["benchmark"].unique())
    facts = {row["arm"]: row for row in summary.iter_rows(named=True)}
    tables = {
        (arm, benchmark): accuracy_table(accuracy, arm, benchmark)
        for arm in arms
        for benchmark in benchmarks
    }
    return {
        "reference": REFERENCE,
        "level": LEVEL,
        "benchmarks": benchmarks,
        "learning_curves": learning_curves(validation),
        "arms": [
            {
                "arm": arm,
                "seeds": _seeds(accuracy, arm),
                "accuracy": {b: _json(estimate(tables[arm, b])) for b in benchmarks},
                "difference": {
                    b: _json(estimate(paired(tables[arm, b], tables[REFERENCE, b]), least=-1.0))
                    for b in benchmarks
                    if REFERENCE in arms and arm not in (BASE, REFERENCE)
                },
                "answered": {
                    b: _ratio(accuracy, arm, b, "extracted", "samples") for b in benchmarks
                },
                "flawed": {b: _ratio(accuracy, arm, b, "flawed", "checked") for b in benchmarks},
                "training": facts.get(arm),
            }
            for arm in arms
        ],
    }


def _seeds(accuracy: pl.DataFrame, arm: str) -> list[int]:
    seeds = accuracy.filter(pl.col("arm") == arm)["seed"]
    return seeds.drop_nulls().unique().sort().to_list()


def _ratio(accuracy: pl.DataFrame, arm: str, benchmark: str, part: str, whole: str) -> float | None:
    rows = accuracy.filter((pl.col("arm") == arm) & (pl.col("benchmark") == benchmark))
    total = int(rows[whole].sum())
    return int(rows[part].sum()) / total if total else None


def _json(made: Estimate | None) -> dict[str, Any] | None:
    return None if made is None else asdict(made)
