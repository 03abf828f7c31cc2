"""Compare: pairing, flips, difference and responses, against plain Python over rows."""

from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_loops import assert_same, made_catalog

from analysis.compared_responses import question_text, responses
from analysis.comparison import accuracy_table, estimate, paired
from analysis.pairs import (
    FLIPS,
    Pair,
    Side,
    compare_sides,
    compared,
    difference_table,
    paired_cells,
    run_pairs,
)
from analysis.queries import answer
from app.components.compare_result import difference_words, meaning, pairing

in_every_scope = pytest.mark.parametrize("scope", SCOPES, ids=str)


# The queries


def counts(found: list[Row]) -> Row:
    graded = [row["correct"] for row in found if row["correct"] is not None]
    return {"graded": len(graded), "correct": sum(graded)}


@in_every_scope
def test_compare_checkpoints(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = ("study", "arm", "seed", "run", "benchmark", "step")
    expected = [
        dict(zip(keys[:-1], key, strict=False))
        | {"domain": {"validation": None, "test_ood": "out"}.get(key[4], "in"), "step": key[5]}
        | {"samples": len(found)}
        | counts(found)
        for key, found in by(scope.rows("evaluations"), *keys).items()
    ]
    assert_same(answer(golden, "compare_checkpoints", **scope.asked), expected, *keys)


@in_every_scope
@pytest.mark.parametrize(("benchmark", "step"), [("test_id", None), ("validation", 8)])
def test_compare_answers(
    golden: duckdb.DuckDBPyConnection, scope: Scope, benchmark: str, step: int | None
) -> None:
    keys = ("study", "arm", "seed", "run", "step", "question")
    rows = [row for row in scope.rows("evaluations") if row["benchmark"] == benchmark]
    last = {run: max(row["step"] for row in found) for (run,), found in by(rows, "run").items()}
    asked = [row for row in rows if row["step"] == (last[row["run"]] if step is None else step)]
    expected = [
        dict(zip(keys, key, strict=True)) | {"level": found[0]["level"]} | counts(found)
        for key, found in by(asked, *keys).items()
    ]
    assert any(0 < row["correct"] < row["graded"] for row in expected)
    frame = answer(golden, "compare_answers", benchmark=benchmark, step=step, **scope.asked)
    assert_same(frame, expected, "study", "arm", "seed", "run", "question")


@in_every_scope
@pytest.mark.parametrize("window", [(None, None), (3, 7), (None, 2), (12, None)])
def test_compare_rollouts(
    golden: duckdb.DuckDBPyConnection, scope: Scope, window: tuple[int | None, int | None]
) -> None:
    first, last = window
    keys = ("study", "arm", "seed", "run", "question")
    inside = [
        row
        for row in scope.rows("trajectories")
        if (first or 0) <= row["step"] <= (10**6 if last is None else last)
    ]
    expected = [
        dict(zip(keys, key, strict=True))
        | {"level": found[0]["level"], "visits": len(by(found, "step", "group"))}
        | counts([row for row in found if not row["replayed"]])
        for key, found in by(inside, *keys).items()
    ]
    asked = {"step_min": first, "step_max": last, **scope.asked}
    assert_same(answer(golden, "compare_rollouts", **asked), expected, *keys)


# Pairing, flips, difference


def side_rows(*cells: tuple[str, int | None, str, int, int]) -> pl.DataFrame:
    """Rows of `compare_answers`: run, seed, question, right, graded."""
    names = ["run", "seed", "question", "correct", "graded"]
    frame = pl.DataFrame(list(cells), names, orient="row")
    return frame.with_columns(
        pl.col("seed").cast(pl.Int64), level=pl.lit(1, pl.Int64), step=pl.lit(4, pl.Int64)
    )


def test_runs_of_one_seed_are_paired() -> None:
    a, b = {"a0": 0, "a1": 1}, {"b1": 1, "b2": 2}
    assert run_pairs(a, b) == [Pair(1, "a1", "b1")]
    assert run_pairs({"base": None}, b) == [Pair(1, "base", "b1"), Pair(2, "base", "b2")]
    assert run_pairs({"a0": 0}, {"b1": 1}) == [Pair(None, "a0", "b1")]  # one run against one
    assert run_pairs({"a0": 0}, {"a0": 0}) == [Pair(0, "a0", "a0")]  # at two steps
    assert run_pairs({"a0": 0}, {"b1": 1, "b2": 2}) == []
    assert run_pairs({}, b) == []


def test_a_comparison_by_hand() -> None:
    a = side_rows(
        *[("a0", 0, "lost", 4, 4), ("a0", 0, "won", 0, 4), ("a0", 0, "kept", 3, 4)],
        *[("a1", 1, "lost", 3, 4), ("a1", 1, "won", 2, 4), ("a1", 1, "kept", 4, 4)],
        *[("a0", 0, "half", 2, 4), ("a1", 1, "half", 2, 4)],
        *[("a0", 0, "only a", 1, 4), ("a0", 0, "ungraded in b", 1, 4), ("a0", 0, "partly", 1, 4)],
        ("a2", 2, "lost", 0, 4),
    )
    b = side_rows(
        *[("b0", 0, "lost", 1, 4), ("b0", 0, "won", 4, 4), ("b0", 0, "kept", 3, 4)],
        *[("b1", 1, "lost", 2, 4), ("b1", 1, "won", 2, 2), ("b1", 1, "kept", 4, 4)],
        *[("b0", 0, "half", 1, 4), ("b1", 1, "half", 3, 4)],
        *[("b0", 0, "only b", 1, 4), ("b0", 0, "ungraded in b", 0, 0), ("b0", 0, "partly", 1, 4)],
    )
    made = compared(a, b)
    assert made.pairs == [Pair(0, "a0", "b0"), Pair(1, "a1", "b1")]
    assert (made.only_a, made.only_b, made.partly) == (2, 1, 1)
    assert (made.alone_a, made.alone_b, made.steps_a, made.steps_b) == (["a2"], [], [4], [4])
    assert made.questions.drop("level").rows() == [
        ("half", 4, 8, 4, 8, 0.5, 0.5, 0.0, "wrong_wrong"),
        ("kept", 7, 8, 7, 8, 0.875, 0.875, 0.0, "right_right"),
        ("lost", 7, 8, 3, 8, 0.875, 0.375, -0.5, "right_wrong"),
        ("won", 2, 8, 6, 6, 0.25, 1.0, 0.75, "wrong_right"),
    ]
    assert made.signs == (1, 1, 2)
    assert made.counts() == dict.fromkeys(FLIPS, 1)
    assert made.difference is not None
    assert made.difference.by_seed == pytest.approx([0.0, 0.125])
    assert made.difference.value == pytest.approx(0.0625)
    assert difference_words(made).startswith("B − A: +6.2 [")
    assert "over the same 4 questions" in meaning(made)
    assert "with probability 50.0 %" in meaning(made) and "other seeds" in meaning(made)
    assert pairing(made) == (
        "Paired: 2 pairs of runs (seeds 0, 1), 4 questions; A at step 4, B at step 4. Left out: "
        "1 run(s) of A without a partner, 2 question(s) that only A answered, 1 question(s) that "
        "only B answered, 1 question(s) that not every paired run answered."
    )


def test_one_question_has_no_interval() -> None:
    a = side_rows(("a0", 0, "x", 1, 2), ("a1", 1, "x", 1, 2))
    b = side_rows(("b0", 0, "x", 2, 2), ("b1", 1, "x", 2, 2))
    made = compared(a, b)
    assert difference_words(made) == "B − A: +50.0 points"
    assert "no interval" in meaning(made) and "95 %" not in meaning(made)


def test_runs_without_seeds_are_crossed_and_not_resampled() -> None:
    shares = {"x": (0, 3, 4), "y": (1, 2, 2), "z": (4, 4, 0)}
    cells = [(run, q, k) for q, found in shares.items() for run, k in enumerate(found)]
    a = side_rows(*[(f"a{run}", None, q, k, 4) for run, q, k in cells])
    b = side_rows(*[(f"b{run}", None, q, 4 - k, 4) for run, q, k in cells])
    made = compared(a, b)
    assert len(made.pairs) == 9 and made.crossed
    assert made.difference is not None
    assert (made.difference.seeds, made.difference.questions) == (1, 3)
    by_question = made.questions["accuracy_b"] - made.questions["accuracy_a"]
    assert made.difference.value == pytest.approx(by_question.mean())
    assert "not other runs" in meaning(made) and "other seeds" not in meaning(made)
    base = compared(a.filter(pl.col("run") == "a0"), b)  # in each of three pairs
    assert not base.crossed and base.difference is not None and base.difference.seeds == 3


def test_one_pair_says_that_its_interval_is_not_over_seeds() -> None:
    a = side_rows(("a0", 0, "x", 1, 2), ("a0", 0, "y", 1, 2))
    b = side_rows(("a1", 1, "x", 2, 2), ("a1", 1, "y", 1, 2))
    made = compared(a, b)
    assert "not other seeds" in meaning(made)
    assert pairing(made).startswith("Paired: 1 pair of runs, 2 questions")


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ([("a0", 0, "x", 1, 2)], [("b0", 0, "y", 1, 2)]),
        ([("a0", 0, "x", 1, 2)], [("b0", 0, "x", 0, 0)]),
        ([("a0", 0, "x", 1, 2)], [("b1", 1, "x", 1, 2), ("b2", 2, "x", 1, 2)]),
        ([("a0", 0, "x", 1, 2)], []),
    ],
)
def test_nothing_in_common_has_no_difference(a: list[Any], b: list[Any]) -> None:
    empty = side_rows(("none", 0, "none", 0, 0)).clear()
    made = compared(side_rows(*a), side_rows(*b) if b else empty)
    assert made.difference is None and made.questions.is_empty()
    assert made.counts() == dict.fromkeys(FLIPS, 0)


CELLS = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 2]), st.sampled_from("uvwxyz"), st.integers(0, 3), st.integers(0, 3)
    ),
    max_size=18,
    unique_by=lambda cell: cell[:2],
)


@settings(deadline=None, max_examples=30)
@given(CELLS, CELLS)
def test_flips_sum_to_the_questions_and_the_difference_is_that_of_the_house(
    first: list[Any], second: list[Any]
) -> None:
    def rows(name: str, cells: list[Any]) -> pl.DataFrame:
        made = [(f"{name}{s}", s, q, min(k, n), n) for s, q, k, n in cells]
        return side_rows(*made) if made else side_rows(("", 0, "", 0, 0)).clear()

    a, b = rows("a", first), rows("b", second)
    made = compared(a, b)
    assert sum(made.counts().values()) == sum(made.signs) == made.questions.height
    common = {q for _, q, _, n in first if n} & {q for _, q, _, n in second if n}
    if len(set(a["run"])) == len(set(b["run"])) == 1 or not made.pairs:
        return
    assert made.questions.height + made.partly <= len(common)
    if made.difference is not None:
        by_question = made.questions["accuracy_b"] - made.questions["accuracy_a"]
        assert made.difference.value == pytest.approx(by_question.mean())
        assert made.difference.questions == made.questions.height


@pytest.mark.parametrize("benchmark", ["test_id", "test_ood"])
def test_the_difference_of_two_arms_is_the_one_of_the_closing_table(
    golden: duckdb.DuckDBPyConnection, benchmark: str
) -> None:
    accuracy = answer(golden, "arm_accuracy", study="golden")
    first, second = (accuracy_table(accuracy, arm, benchmark) for arm in ("exgrpo", "on_policy"))
    house = paired(first, second)
    made = compare_sides(golden, "golden", benchmark, Side("on_policy"), Side("exgrpo"))
    assert made.difference == estimate(house, least=-1.0)
    assert made.questions["question"].to_list() == house.questions
    cells = paired_cells(
        *(
            answer(golden, "compare_answers", benchmark=benchmark, study="golden").filter(
                pl.col("arm") == arm
            )
            for arm in ("on_policy", "exgrpo")
        ),
        made.pairs,
    )
    np.testing.assert_array_equal(difference_table(cells, made.pairs).values, house.values)


def test_one_arm_at_two_steps_and_two_seeds_of_it(golden: duckdb.DuckDBPyConnection) -> None:
    steps = compare_sides(golden, "golden", "validation", Side("exgrpo", step=0), Side("exgrpo"))
    assert (steps.steps_a, steps.steps_b, len(steps.pairs)) == ([0], [16], 2)
    assert all(pair.run_a == pair.run_b for pair in steps.pairs)
    runs = [pair.run_a for pair in steps.pairs]
    seeds = compare_sides(
        golden, "golden", "test_id", Side("exgrpo", runs[0]), Side("exgrpo", runs[1])
    )
    assert seeds.pairs == [Pair(None, runs[0], runs[1])]
    window = compare_sides(golden, "golden", None, Side("exgrpo", last=8), Side("exgrpo", first=9))
    assert window.steps_a == [] and window.questions.height > 0
    assert (
        compare_sides(golden, "golden", "test_id", Side("exgrpo", "no"), Side("base")).pairs == []
    )


# The responses


def test_responses_are_those_of_the_question(golden: duckdb.DuckDBPyConnection) -> None:
    made = compare_sides(golden, "golden", "validation", Side("exgrpo", step=4), Side("exgrpo"))
    question, runs = made.questions["question"][0], tuple(pair.run_a for pair in made.pairs)
    rows = [
        row
        for row in SCOPES[0].rows("evaluations")
        if (row["benchmark"], row["question"]) == ("validation", question) and row["run"] in runs
    ]
    for asked, step in ((Side("exgrpo", step=4), 4), (Side("exgrpo"), 16)):
        found = responses(golden, "validation", asked, runs, question)
        expected = [row for row in rows if row["step"] == step]
        assert found["response"].to_list() == [
            row["response"] for row in sorted(expected, key=lambda r: (r["seed"], r["sample"]))
        ]
        assert found["id"].n_unique() == found.height
    text = question_text(golden, "validation", question)
    assert text.height == 1 and text["gold"][0]
    assert question_text(golden, None, "no such question").is_empty()


def test_rollouts_are_fresh_and_inside_the_window() -> None:
    run = {"run": "r", "study": "s", "arm": "a", "seed": 0}
    names = ("trajectory", "run", "step", "group", "slot", "question", "replayed", "response")
    rows = [
        dict(
            zip(names, (f"r:{step}:0:{slot}", "r", step, 0, slot, "q", slot == 0, "x"), strict=True)
        )
        for step in (1, 2, 3)
        for slot in (0, 1)
    ]
    with made_catalog(runs=[run], trajectories=rows) as made:
        found = responses(made, None, Side("a", first=2, last=2), ("r",), "q")
    assert found["id"].to_list() == ["r:2:0:1"]
