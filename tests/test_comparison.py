"""Arms against each other: pairs by seed and question, the closing table, learning curves."""

import numpy as np
import polars as pl
import pytest
from claim_frames import accuracy

from analysis.comparison import accuracy_table, compare, estimate, learning_curves, paired


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
