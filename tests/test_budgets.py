"""Two arms at an equal budget: against plain loops, and what cannot be compared."""

from collections import defaultdict
from itertools import pairwise
from statistics import mean
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import rows as golden_rows

from analysis.budgets import NotComparableError, at_equal_budget, with_budgets
from analysis.claims.accuracy import accuracy_at_equal_cost
from analysis.claims.ledger import load_ledger
from analysis.observations.data_efficiency import BUDGETS, DATA_EFFICIENCY
from analysis.queries import answer

ARMS = ("exgrpo", "on_policy")
QUERIES = ("validation_accuracy", "validation_budgets")


def interpolated(course: list[tuple[float, float]], end: float) -> float:
    """Accuracy at `end` along (spent, accuracy): the first validation there, or between two."""
    for (spent, right), (later, then) in pairwise(course):
        if spent >= end:
            return right
        if later > end:
            return right + (then - right) * (end - spent) / (later - spent)
    return next(right for spent, right in course if spent >= end)


def slowly(budgets: pl.DataFrame, budget: str) -> tuple[list[float], float]:
    """Where each seed of the golden lake is compared, and the mean difference there."""
    spent = {(row["arm"], row["seed"], row["step"]): row[budget] for row in budgets.to_dicts()}
    runs = {row["run"]: row for row in golden_rows("runs") if row["study"] == "golden"}
    answers: dict[Any, list[bool]] = defaultdict(list)
    for row in golden_rows("evaluations"):
        if row["benchmark"] == "validation" and row["run"] in runs:
            run = runs[row["run"]]
            answers[run["arm"], run["seed"], row["question"], row["step"]].append(row["correct"])
    ends, found = [], []
    questions = sorted({question for _, _, question, _ in answers})
    for seed in (0, 1):
        steps = sorted({step for _, of, _, step in answers if of == seed})
        end = min(max(spent[arm, seed, step] for step in steps) for arm in ARMS)
        ends.append(end)
        for question in questions:
            first, second = (
                interpolated(
                    [
                        (spent[arm, seed, step], mean(answers[arm, seed, question, step]))
                        for step in steps
                    ],
                    end,
                )
                for arm in ARMS
            )
            found.append(first - second)
    return ends, mean(found)


@pytest.mark.parametrize("budget", BUDGETS)
def test_the_golden_lake(golden: duckdb.DuckDBPyConnection, budget: str) -> None:
    accuracy, budgets = (answer(golden, name, study="golden") for name in QUERIES)
    made = at_equal_budget(with_budgets(accuracy, budgets), *ARMS, budget)
    ends, difference = slowly(budgets, budget)
    assert made.spent == ends
    assert made.differences.seeds == [0, 1]
    assert made.differences.values.mean() == pytest.approx(difference)


def test_claim_and_observation_say_the_same(golden: duckdb.DuckDBPyConnection) -> None:
    frames = {name: answer(golden, name, study="golden") for name in QUERIES}
    (said,) = (
        line for line in DATA_EFFICIENCY.lines(frames) if line.startswith("exgrpo minus on_policy")
    )
    claims = {claim.id: claim for claim in load_ledger().claims}
    for name in ("C20a", "C20b", "C20c"):
        claim = claims[name]
        made = accuracy_at_equal_cost(claim, frames).made
        label = BUDGETS[str(claim.given["cost"])]
        low, high = (100 * bound for bound in made.interval())
        (part,) = (part for part in said.split("; ") if f" {label}" in part)
        assert f"{100 * made.value:+.1f} points [{low:+.1f}, {high:+.1f}] at" in part


def world(
    courses: dict[tuple[str, int | None], list[tuple[int, float | None, int]]],
) -> pl.DataFrame:
    """Of each arm and seed its validations (step, spent, right of 10) on one question."""
    found = [
        {"arm": arm, "seed": seed, "step": step, "seconds": spent, "question": "q"}
        | {"samples": 10, "correct": right}
        for (arm, seed), course in courses.items()
        for step, spent, right in course
    ]
    rows = pl.DataFrame(found, schema_overrides={"seed": pl.Int64, "seconds": pl.Float64})
    return with_budgets(rows.drop("seconds"), rows.select("arm", "seed", "step", "seconds"))


def test_each_seed_is_compared_where_its_lesser_arm_ends_at_the_first_validation_there() -> None:
    rows = world(
        {
            ("a", 0): [(0, 0, 0), (1, 10, 4), (2, 20, 6)],
            ("b", 0): [(0, 0, 0), (1, 20, 5), (2, 20, 9)],  # nothing more is spent: 5 counts
            ("a", 1): [(0, 0, 0), (1, 10, 4), (2, 20, 8)],
            ("b", 1): [(0, 0, 0), (1, 4, 2), (2, 5, 3)],
            ("a", 2): [(0, 0, 0)],  # has only begun
            ("b", 2): [(0, 0, 9), (1, 4, 9), (2, 5, 9)],
        }
    )
    made = at_equal_budget(rows, "a", "b", "seconds")
    assert (made.differences.seeds, made.spent) == ([0, 1], [20, 5])
    assert made.differences.values[:, 0].tolist() == pytest.approx([0.1, -0.1])


def test_runs_without_a_seed_pair() -> None:
    made = at_equal_budget(
        world({("a", None): [(1, 2, 3)], ("b", None): [(1, 2, 1)]}), "a", "b", "seconds"
    )
    assert made.differences.values.tolist() == [[pytest.approx(0.2)]]


@pytest.mark.parametrize(
    ("courses", "why"),
    [
        ({("a", 0): [(0, 0, 1)], ("b", 1): [(0, 0, 1)]}, "no seed has a and b"),
        (
            {("a", 0): [(0, 0, 1), (5, None, 1)], ("b", 0): [(0, 0, 1), (5, 3, 1)]},
            "the log has no `seconds` of a, seed 0, at step 5",
        ),
        (
            {("a", 0): [(1, 1, 1), (2, 2, 1)], ("b", 0): [(1, 5, 1), (2, 9, 1)]},
            "b, seed 0, had spent more by its first validation than the other by its end",
        ),
    ],
)
def test_what_cannot_be_compared_is_named(
    courses: dict[tuple[str, int | None], list[tuple[int, float | None, int]]], why: str
) -> None:
    with pytest.raises(NotComparableError, match=f"^{why}$"):
        at_equal_budget(world(courses), "a", "b", "seconds")


def test_no_question_in_common_is_said() -> None:
    rows = world({("a", 0): [(0, 0, 1)], ("b", 0): [(0, 0, 1)]})
    apart = rows.with_columns(question=pl.col("arm"))
    with pytest.raises(NotComparableError, match="no question was validated in every run"):
        at_equal_budget(apart, "a", "b", "seconds")
