"""avg@k, pass@k and maj@k, by SQL and by plain loops; means over benchmarks."""

import json
from collections import Counter
from dataclasses import asdict
from itertools import combinations
from math import comb
from statistics import mean

import duckdb
import numpy as np
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by, share
from hypothesis import example, given, settings
from hypothesis import strategies as st
from replay_loops import assert_same, made_catalog

from analysis.comparison import accuracy_table, estimate
from analysis.domains import balanced, weights
from analysis.queries import answer
from analysis.scores import benchmark_scores as of_study
from analysis.statistics import bootstrap_mean, maj_at_k

# maj@k


def majority(samples: list[tuple[str | None, bool]]) -> float:
    """The vote of some samples, each an answer and whether it is right: the definition."""
    votes = Counter(sample for sample in samples if sample[0] is not None)
    top = [right for (_, right), count in votes.items() if count == max(votes.values())]
    return mean(top) if top else 0.0


ANSWERS = st.sampled_from([("7", True), ("14/2", True), ("8", False), ("9", False), (None, False)])


@settings(deadline=None)
@given(samples=st.lists(ANSWERS, min_size=1, max_size=9))
@example(samples=[("7", True), ("8", False)])  # a tie shares the vote
@example(samples=[(None, False), (None, False)])  # nobody votes
def test_maj_at_k_is_the_mean_over_all_draws(samples: list[tuple[str | None, bool]]) -> None:
    votes = Counter(samples)
    right = [count for (said, good), count in votes.items() if said is not None and good]
    wrong = [count for (said, good), count in votes.items() if said is not None and not good]
    found = maj_at_k(right, wrong, votes[None, False])
    for k in range(1, len(samples) + 1):
        draws = [majority(list(draw)) for draw in combinations(samples, k)]
        assert found[k - 1] == pytest.approx(mean(draws)), k
    assert found[0] == pytest.approx(mean(good for _, good in samples))  # maj@1 is avg@k


def test_more_votes_help_a_likely_answer_and_hurt_an_unlikely_one() -> None:
    likely, unlikely = maj_at_k([20], [6, 6], 0), maj_at_k([6], [20, 6], 0)
    assert likely[-1] == 1 and likely[0] < likely[8] < likely[-1]
    assert unlikely[-1] == 0 and unlikely[0] > unlikely[8] > unlikely[-1]


@pytest.mark.parametrize("n", [1029, 1030, 3000])
def test_maj_at_k_of_a_thousand_samples_and_more(n: int) -> None:
    """One right answer and one wrong one, the others silent: right alone, or half of a tie."""
    found = maj_at_k([1], [1], n - 2)
    k = np.arange(1, n + 1)
    both = k * (k - 1) / (n * (n - 1))
    assert found == pytest.approx(k / n - both / 2)


def test_maj_at_k_of_many_votes_is_that_of_the_smaller_ones_magnified() -> None:
    found = maj_at_k([700], [500], 0)
    assert found[0] == pytest.approx(7 / 12) and found[-1] == pytest.approx(1)
    assert (np.diff(found[::2]) > -1e-9).all()


# SQL against plain loops


def samples_of(scope: Scope) -> list[Row]:
    """Graded and ungraded samples of the tests at the last step of their run."""
    return [
        row
        for row in scope.rows("evaluations")
        if row["benchmark"] != "validation"
        and row["step"] == (scope.runs[row["run"]]["steps"] or 0)
    ]


def said(row: Row) -> str | None:
    return row.get("vote") or row["extracted"]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_answer_votes(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = ("study", "arm", "seed", "run", "step", "benchmark", "question")
    graded = [
        row | {"answer": said(row)} for row in samples_of(scope) if row["correct"] is not None
    ]
    expected = [
        dict(zip((*keys, "answer"), key, strict=True))
        | {"votes": len(found), "correct": any(row["correct"] for row in found)}
        for key, found in by(graded, *keys, "answer").items()
    ]
    assert any(row["votes"] > 1 for row in expected)
    assert_same(answer(golden, "answer_votes", **scope.asked), expected, *keys, "answer")


def scored(rows: list[Row]) -> Row:
    """One benchmark and run by the definitions; rows: its samples."""
    graded = [row for row in rows if row["correct"] is not None]
    questions = list(by(graded, "question").values())
    k = min((len(found) for found in questions), default=None)
    counts = [(len(found), sum(row["correct"] for row in found)) for found in questions]
    read = [row for row in graded if row["extracted"] is not None]
    return {
        "questions": len(questions),
        "samples": len(graded),
        "ungraded": len(rows) - len(graded),
        "k": k,
        "accuracy": share(c / n for n, c in counts),
        "pass_at_k": share(1 - comb(n - c, k) / comb(n, k) for n, c in counts if k is not None),
        "maj_at_n": share(
            majority([(said(row), row["correct"]) for row in found]) for found in questions
        ),
        "answered": len(read) / len(graded) if graded else None,
        "accuracy_answered": share(row["correct"] for row in read),
        "truncated": share(row["finish"] == "length" for row in graded),
        "tokens": share(row["length"] for row in graded),
    }


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_benchmark_scores(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = ("study", "arm", "seed", "run", "step", "benchmark")
    expected = [
        dict(zip(keys, key, strict=True))
        | {"domain": "out" if key[-1] == "test_ood" else "in"}
        | scored(found)
        for key, found in by(samples_of(scope), *keys).items()
    ]
    assert any(row["k"] > 1 and 0 < row["maj_at_n"] < 1 for row in expected)
    assert_same(answer(golden, "benchmark_scores", **scope.asked), expected, *keys)


def test_scores_are_of_the_tested_step_and_of_what_was_graded() -> None:
    """Of a best checkpoint its own step; a benchmark that the grader failed on has no scores."""
    best = json.dumps({"evaluation": {"checkpoint": "best"}})
    runs: list[Row] = [
        {"run": "best", "study": "s", "arm": "a", "seed": 0, "steps": 9, "settings": best},
        {"run": "last", "study": "s", "arm": "a", "seed": 1, "steps": 9, "settings": "{}"},
    ]
    sample = {"question": "q", "sample": 0, "extracted": "1", "length": 2, "finish": "stop"}
    evaluations = [
        {**sample, "run": run, "step": step, "benchmark": benchmark, "correct": correct}
        for run, step, benchmark, correct in (
            ("best", 4, "aime", True),
            ("last", 4, "aime", True),
            ("last", 9, "aime", False),
            ("last", 9, "broken", None),
        )
    ]
    with made_catalog(runs=runs, evaluations=evaluations) as made:
        frame = answer(made, "benchmark_scores")
        steps = answer(made, "arm_accuracy").select("run", "step", "benchmark").rows()
    names = ("run", "step", "benchmark", "questions", "accuracy", "maj_at_n", "ungraded")
    assert frame.select(names).rows() == [
        ("best", 4, "aime", 1, 1.0, 1.0, 0),
        ("last", 9, "aime", 1, 0.0, 0.0, 0),
        ("last", 9, "broken", 0, None, None, 1),
    ]
    assert steps == [("best", 4, "aime"), ("last", 9, "aime"), ("last", 9, "broken")]


def test_all_numbers_of_an_arm_are_over_the_questions_that_every_seed_answered() -> None:
    """q2 has no graded sample of seed 1; one run does not know how long its samples are."""
    runs: list[Row] = [
        {"run": f"r{seed}", "study": "s", "arm": "a", "seed": seed, "steps": 1, "settings": "{}"}
        for seed in (0, 1)
    ]
    given_ = {("r0", "q1"): "TF", ("r1", "q1"): "TT", ("r0", "q2"): "FF", ("r1", "q2"): "??"}
    evaluations = [
        {"run": run, "step": 1, "benchmark": "aime", "question": question, "sample": sample}
        | {"correct": {"T": True, "F": False}.get(mark), "length": 4 if run == "r0" else None}
        | {"extracted": "7" if mark == "T" else "8", "finish": "stop"}
        for (run, question), marks in given_.items()
        for sample, mark in enumerate(marks)
    ]
    with made_catalog(runs=runs, evaluations=evaluations) as made:
        names = ("arm_accuracy", "answer_votes", "benchmark_scores")
        accuracy, *others = (answer(made, name) for name in names)
    average = estimate(accuracy_table(accuracy, "a", "aime"))
    assert average is not None
    found = of_study({"a": {"aime": asdict(average)}}, accuracy, *others)["a"]["aime"]
    assert (found["k"], found["questions"], found["ungraded"]) == (2, 1, 2)
    assert found["avg_at_k"]["value"] == found["by_k"][0]["pass_at_k"] == 0.75
    assert found["by_k"][-1] == {"k": 2, "pass_at_k": 1, "maj_at_k": 0.75}
    assert found["pass_at_k"]["value"] == 1 and found["tokens"] == 4


# Domains


def test_a_mean_over_benchmarks_has_the_spread_within_them() -> None:
    """Ten easy and ninety hard questions: the mean of two means, and their variance, not more."""
    rng = np.random.default_rng(0)
    names = ["easy"] * 10 + ["hard"] * 90
    values = np.concatenate([0.7 + rng.random((2, 10)) * 0.3, rng.random((2, 90)) * 0.3], axis=1)
    moved = balanced(values, names)
    easy, hard = values[:, :10], values[:, 10:]
    assert moved.mean(axis=1) == pytest.approx((hard.mean(axis=1) + easy.mean(axis=1)) / 2)
    own = (easy[0].var(ddof=1) / 10 + hard[0].var(ddof=1) / 90) / 4
    assert bootstrap_mean(moved[:1]).se ** 2 == pytest.approx(own, rel=0.05)
    assert bootstrap_mean(values[:1] * weights(names)).se ** 2 > 2 * own  # what is not done
    assert balanced(values, ["hard"] * 100) is values
    few = np.concatenate([values[:1, :2], values[:1, 10:]], axis=1)
    own = (few[0, :2].var(ddof=1) / 2 + hard[0].var(ddof=1) / 90) / 4
    wide = bootstrap_mean(balanced(few, ["easy"] * 2 + ["hard"] * 90))
    assert wide.se**2 == pytest.approx(own, rel=0.05)
    with pytest.raises(ValueError, match="easy has one question"):
        balanced(few[:, 1:], ["easy"] + ["hard"] * 90)
    assert weights(["hard"] * 3).tolist() == [1, 1, 1]
    assert weights(names).mean() == pytest.approx(1)
