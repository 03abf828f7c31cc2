"""Validation accuracy of two arms where both have spent as much: questions, tokens or time.

In each seed that is what the arm that spent less had spent by its end. Accuracy is taken there
question by question, linear between the validations around it. Ours.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl

from analysis.comparison import AccuracyTable
from analysis.statistics import Floats


class NotComparableError(Exception):
    """The two arms cannot be compared at an equal budget; the message says why."""


@dataclass(frozen=True)
class EqualBudget:
    """differences: first arm minus second, no NaN; spent [S]: where each seed was compared."""

    differences: AccuracyTable
    spent: list[float]


@dataclass(frozen=True)
class _Course:
    """One run: spent [T], never falling, and accuracy [T, Q], NaN where ungraded."""

    spent: Floats
    accuracy: Floats
    questions: list[str]

    def at(self, spent: float) -> dict[str, float]:
        """Accuracy by question where so much was spent; of validations alike in it, the first."""
        after = int(np.searchsorted(self.spent, spent, side="left"))
        found = self.accuracy[after]
        if self.spent[after] > spent:
            before = self.spent[after - 1]
            part = (spent - before) / (self.spent[after] - before)
            found = self.accuracy[after - 1] * (1 - part) + found * part
        return dict(zip(self.questions, found.tolist(), strict=True))


def with_budgets(accuracy: pl.DataFrame, budgets: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by arm, seed, step and question beside what had been spent by then.

    accuracy, budgets: the answers to `validation_accuracy` and `validation_budgets` for one study
    or import. Seeds that did not reach the last validation of their arm are left out.
    """
    last = pl.col("step").max()
    return (
        accuracy.filter(pl.col("samples") > 0)
        .with_columns(accuracy=pl.col("correct") / pl.col("samples"))
        .join(
            budgets.drop("study", "run", strict=False),
            on=["arm", "seed", "step"],
            nulls_equal=True,
            maintain_order="left",
        )
        .filter(last.over("arm", "seed") == last.over("arm"))
    )


def at_equal_budget(rows: pl.DataFrame, first: str, second: str, budget: str) -> EqualBudget:
    """First arm minus second where both have spent as much of a column of `with_budgets`.

    Over the seeds that have both, and the questions that all these runs graded around there.
    Raises NotComparableError.
    """
    others = _seeds(rows, second)
    seeds = [seed for seed in _seeds(rows, first) if seed in others]
    if not seeds:
        raise NotComparableError(f"no seed has {first} and {second}")
    spent, found = [], []
    for seed in seeds:
        pair = [_course(rows, arm, seed, budget) for arm in (first, second)]
        end = float(min(course.spent[-1] for course in pair))
        for arm, course in zip((first, second), pair, strict=True):
            if course.spent[0] > end:
                raise NotComparableError(
                    f"{_run(arm, seed)}, had spent more by its first validation than the other by "
                    f"its end"
                )
        one, other = (course.at(end) for course in pair)
        spent.append(end)
        found.append({name: one[name] - other[name] for name in one if name in other})
    questions = sorted(
        name
        for name in set.intersection(*(set(each) for each in found))
        if all(np.isfinite(each[name]) for each in found)
    )
    if not questions:
        raise NotComparableError("no question was validated in every run")
    values = np.array([[each[name] for name in questions] for each in found])
    return EqualBudget(AccuracyTable(values, seeds, questions), spent)


def _seeds(rows: pl.DataFrame, arm: str) -> list[int | None]:
    return rows.filter(pl.col("arm") == arm)["seed"].unique().sort().to_list()


def _course(rows: pl.DataFrame, arm: str, seed: int | None, budget: str) -> _Course:
    mine = rows.filter((pl.col("arm") == arm) & pl.col("seed").eq_missing(seed))
    unknown = mine.filter(pl.col(budget).is_null())["step"]
    if len(unknown):
        raise NotComparableError(
            f"the log has no `{budget}` of {_run(arm, seed)}, at step {unknown.to_numpy().min()}"
        )
    of_step = ["step", budget]
    wide = mine.pivot("question", index=of_step, values="accuracy", aggregate_function="mean")
    wide = wide.sort("step")
    questions = wide.columns[2:]
    return _Course(
        wide[budget].cast(pl.Float64).to_numpy(),
        wide.select(questions).cast(pl.Float64).to_numpy(),
        questions,
    )


def _run(arm: str, seed: int | None) -> str:
    return arm if seed is None else f"{arm}, seed {seed}"
