"""Arms against each other: pairs by seed and question, the closing table, learning curves."""

import numpy as np
import polars as pl
import pytest
from claim_frames import accuracy

from analysis.comparison import (
    AccuracyTable,
    accuracy_table,
    compare,
    estimate,
    learning_curves,
    paired,
)


def test_pairs_are_matched_by_seed_and_question() -> None:
    """Rows in another order, a seed and a question that only one arm has: the rest is paired."""
    given = accuracy({"a": 0.3, "b": 0.6}, questions=5)
    first = given.filter(~((pl.col("arm") == "a") & (pl.col("seed") == 2))).sample(
        fraction=1, shuffle=True, seed=0
    )
    first = first.filter(~((pl.col("arm") == "b") & (pl.col("question") == "q3")))
    table = paired(accuracy_table(first, "a", "test_id"), accuracy_table(first, "b", "test_id"))
    assert (table.seeds, table.questions) == ([0, 1], ["q0", "q1", "q2", "q4"])
    known = {
        (row["arm"], row["seed"], row["question"]): row["correct"] / 4
        for row in given.filter(pl.col("benchmark") == "test_id").iter_rows(named=True)
    }
    for i, seed in enumerate(table.seeds):
        for j, question in enumerate(table.questions):
            expected = known["a", seed, question] - known["b", seed, question]
            assert table.values[i, j] == pytest.approx(expected)


def test_comparison_of_arms() -> None:
    given = accuracy({"exgrpo": 0.5, "on_policy": 0.4, "base": 0.2}).with_columns(
        seed=pl.when(pl.col("arm") == "base").then(None).otherwise("seed")
    )
    given = given.filter((pl.col("arm") != "base") | pl.col("run").str.ends_with("s0"))
    facts = pl.DataFrame({"arm": ["exgrpo"], "signal_share": [0.5]})
    curves = given.filter((pl.col("benchmark") == "test_id") & (pl.col("arm") != "base"))
    made = compare(given, facts, curves)
    base, reference, exgrpo = made["arms"]
    assert [entry["arm"] for entry in made["arms"]] == ["base", "on_policy", "exgrpo"]
    assert base["seeds"] == [] and base["difference"] == {} and base["training"] is None
    assert base["accuracy"]["test_id"]["seeds"] == 1
    assert reference["difference"] == {}
    difference = exgrpo["difference"]["test_id"]
    assert difference["value"] == pytest.approx(
        exgrpo["accuracy"]["test_id"]["value"] - reference["accuracy"]["test_id"]["value"]
    )
    assert np.mean(difference["by_seed"]) == pytest.approx(difference["value"])
    assert base["accuracy"]["test_id"]["low"] >= 0 and exgrpo["training"] == facts.row(
        0, named=True
    )
    empty = compare(given.clear(), facts, curves.clear())
    assert empty["arms"] == [] and empty["learning_curves"] == {}


def test_learning_curves_carry_bootstrap_intervals_of_the_same_seeds() -> None:
    rows = accuracy({"exgrpo": 0.5, "on_policy": 0.4}, questions=60).filter(
        pl.col("benchmark") == "test_id"
    )
    steps = pl.concat(
        [rows.with_columns(step=pl.lit(step), correct=pl.col("correct") // divide)
         for step, divide in ((0, 4), (10, 2), (20, 1))]
    )  # fmt: skip
    stopped = steps.filter(~((pl.col("step") == 20) & (pl.col("seed") == 2)))
    curves = learning_curves(stopped)
    assert list(curves) == ["on_policy", "exgrpo"]
    assert [point["step"] for point in curves["exgrpo"]] == [0, 10, 20]
    for point in curves["exgrpo"]:
        assert point["seeds"] == 2 and point["questions"] == 60
        assert point["low"] < point["value"] < point["high"]
    last = rows.filter((pl.col("arm") == "exgrpo") & (pl.col("seed") < 2))
    assert curves["exgrpo"][-1]["value"] == pytest.approx((last["correct"] / 4).mean())
    again = estimate(accuracy_table(last, "exgrpo", "test_id"))
    assert again is not None
    assert curves["exgrpo"][-1]["low"] == pytest.approx(again.low, abs=0.01)


@pytest.mark.parametrize(("share", "questions"), [(0.0, 30), (1.0, 30), (0.0, 1)])
def test_an_arm_without_a_right_or_a_wrong_answer_has_the_exact_interval(
    share: float, questions: int
) -> None:
    """Clopper and Pearson's, over questions: samples and seeds of one are no more draws."""
    given = accuracy({"exgrpo": 0.5, "on_policy": 0.5}, questions=questions)
    given = given.with_columns(correct=(pl.col("samples") * share).cast(pl.Int64))
    reach = 1 - 0.025 ** (1 / questions)
    made = compare(given, pl.DataFrame({"arm": []}), given.clear().with_columns(step=None))
    for entry in made["arms"]:
        found = entry["accuracy"]["test_id"]
        low, high = (0.0, reach) if share == 0 else (1 - reach, 1.0)
        assert (found["low"], found["high"]) == pytest.approx((low, high))
        assert found["value"] == share
    difference = made["arms"][-1]["difference"]["test_id"]  # of the test, as it was
    assert difference["low"] == difference["high"] == difference["value"] == 0


def test_one_right_answer_is_enough_for_the_bootstrap() -> None:
    given = accuracy({"on_policy": 0.5}, questions=30).filter(pl.col("benchmark") == "test_id")
    one = (pl.col("question") == "q0") & (pl.col("seed") == 0)
    given = given.with_columns(correct=pl.when(one).then(1).otherwise(0))
    found = estimate(accuracy_table(given, "on_policy", "test_id"))
    assert found is not None and found.low == 0 < found.value < found.high < 0.1


def test_the_exact_interval_over_benchmarks_is_that_of_the_smallest() -> None:
    values, names = np.zeros((2, 12)), ["a"] * 2 + ["b"] * 10
    table = AccuracyTable(values, [0, 1], [f"q{n}" for n in range(12)], names)
    found = estimate(table, benchmarks=["a", "b"])
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.0, 1 - 0.025 ** (1 / 4)))
