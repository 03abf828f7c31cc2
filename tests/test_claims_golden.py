"""The ledger on the golden lake: its own queries and its verdicts against plain loops."""

import json
from collections import defaultdict
from itertools import pairwise
from statistics import mean
from typing import Any

import duckdb
import numpy as np
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by
from replay_loops import assert_same

from analysis.claims import Verdict, judge, load_ledger
from analysis.queries import answer
from pipeline.analyse import queries_needed

ARM = ("study", "arm")
STUDY = SCOPES[1]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_stored_answers(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    """Every stored trajectory is looked up in the log, and every graded fresh one since counted."""
    stored = {
        (row["run"], row["trajectory"])
        for row in scope.rows("experience")
        if row["event"] == "stored"
    }
    begun: dict[str, int] = {}
    for row in scope.rows("experience"):
        if row["event"] == "stored":
            begun[row["run"]] = min(row["step"], begun.get(row["run"], row["step"]))
    fresh = [
        row
        for row in scope.rows("trajectories")
        if not row["replayed"] and row["correct"] is not None
        if row["run"] in begun and row["step"] >= begun[row["run"]]
    ]
    expected = []
    for (study, arm), rows in by(fresh, *ARM).items():
        kept = [row for row in rows if (row["run"], row["trajectory"]) in stored]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "sampled": len(rows),
                "sampled_wrong": sum(not row["correct"] for row in rows),
                "stored": len(kept),
                "stored_wrong": sum(not row["correct"] for row in kept),
            }
        )
    assert sum(row["stored"] for row in expected) > 10
    assert_same(answer(golden, "stored_answers", **scope.asked), expected, *ARM)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_replay_weights(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    betas = {
        run: json.loads(row["settings"])["objective"]["beta"]
        for run, row in scope.runs.items()
        if row["arm"] == "exgrpo" or row["arm"] == "highest_entropy"
    }
    replayed = [
        row
        for row in scope.rows("trajectories")
        if row["replayed"] and row["ratio_min"] is not None
    ]
    expected = []
    for (study, arm), rows in by(replayed, *ARM).items():
        ends = [
            (row[f"ratio_{end}"], row[f"weight_{end}"], betas[row["run"]])
            for row in rows
            for end in ("min", "max")
        ]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "beta": min(beta for _, _, beta in ends),
                "trajectories": len(rows),
                "from_ratio": max(abs(weight - w / (w + beta)) for w, weight, beta in ends),
                "from_sum": max(abs(weight - w - beta * w) for w, weight, beta in ends),
            }
        )
    assert {row["arm"] for row in expected} == {"exgrpo", "highest_entropy"}
    assert_same(answer(golden, "replay_weights", **scope.asked), expected, *ARM)


@pytest.fixture(scope="module")
def verdicts(golden: duckdb.DuckDBPyConnection) -> dict[str, Verdict]:
    ledger = load_ledger()
    frames = {name: answer(golden, name, study="golden") for name in queries_needed(ledger)}
    return {found.claim: found for found in judge(ledger, frames)}


def test_accuracy_differences(verdicts: dict[str, Verdict]) -> None:
    """Mean over seeds and questions of the share right at the last step, arm minus arm."""
    right: dict[Any, list[bool]] = defaultdict(list)
    for row in STUDY.rows("evaluations"):
        if row["step"] == STUDY.runs[row["run"]]["steps"] and row["correct"] is not None:
            key = (row["arm"], row["benchmark"], row["seed"], row["question"])
            right[key].append(row["correct"])
    for name, first, second, benchmark in (
        ("C1", "exgrpo", "on_policy", "test_id"),
        ("C2", "exgrpo", "on_policy", "test_ood"),
        ("C9a", "exgrpo", "highest_entropy", "test_id"),
    ):
        pairs = [
            mean(right[key]) - mean(right[second, *key[1:]])
            for key in right
            if key[:2] == (first, benchmark)
        ]
        if not any(pairs):  # the two arms answer alike there, to the last sample
            assert verdicts[name].verdict == "not testable here"
            assert "nothing varies" in verdicts[name].reading
            continue
        assert verdicts[name].value == pytest.approx(mean(pairs)), name
        assert verdicts[name].seeds == 2
    assert verdicts["C1"].value is not None


def test_the_course_of_training(verdicts: dict[str, Verdict]) -> None:
    ends = {(r["arm"], r["seed"]): r for r in STUDY.rows("steps") if r["step"] == 16}
    runs = {(r["arm"], r["seed"]): r for r in STUDY.runs.values() if r["seed"] is not None}
    train = {key: json.loads(run["settings"])["questions"]["train"] for key, run in runs.items()}
    keys = [("exgrpo", seed) for seed in (0, 1)]
    buffered, retired = (
        np.array([ends[key][name] / train[key] for key in keys])
        for name in ("buffer_questions", "retired_questions")
    )
    assert verdicts["C18a"].value == pytest.approx((buffered + retired).mean())
    assert verdicts["C18b"].value == pytest.approx((retired - buffered).mean())
    times = [
        np.log(runs["exgrpo", seed]["seconds"] / runs["on_policy", seed]["seconds"])
        for seed in (0, 1)
    ]
    assert verdicts["C19"].value == pytest.approx(np.mean(times))


def test_accuracy_at_equal_tokens(verdicts: dict[str, Verdict]) -> None:
    right: dict[Any, list[bool]] = defaultdict(list)
    for row in STUDY.rows("evaluations"):
        if row["benchmark"] == "validation" and row["correct"] is not None:
            right[row["arm"], row["seed"], row["question"], row["step"]].append(row["correct"])
    spent = {
        (r["arm"], r["seed"], r["step"]): r["total_sampled_tokens"] for r in STUDY.rows("steps")
    }
    questions = {key[2] for key in right}
    pairs = []
    for seed in (0, 1):
        end = min(spent[arm, seed, 16] for arm in ("exgrpo", "on_policy"))
        for question in questions:
            values = []
            for arm in ("exgrpo", "on_policy"):
                path = [(0, mean(right[arm, seed, question, 0]))]
                for step in (4, 8, 12, 16):
                    path.append((spent[arm, seed, step], mean(right[arm, seed, question, step])))
                values.append(at(path, end))
            pairs.append(values[0] - values[1])
    assert verdicts["C20b"].value == pytest.approx(mean(pairs))


def at(path: list[tuple[int, float]], where: float) -> float:
    """The height of a broken line at a place on it."""
    for (left, low), (right, high) in pairwise(path):
        if left <= where <= right:
            return low + (high - low) * (where - left) / (right - left)
    raise AssertionError(f"{where} is not on {path}")


def test_what_is_counted_in_the_log(verdicts: dict[str, Verdict]) -> None:
    """A bucket for each count, no wrong answer among the stored, and the paper's shaping."""
    filled = {
        k
        for row in STUDY.rows("steps")
        if row["arm"] == "exgrpo" and (row["step"] % 5 == 0 or row["step"] == 16)
        for k, questions in enumerate(row["bucket_sizes"], start=1)
        if questions
    }
    assert verdicts["S5"].verdict == "contradicted" and len(filled) > 3
    assert verdicts["S5"].reading.endswith(
        "there are 7 buckets, those of 1, 2, 3, 4, 5, 6, 7 right; "
        f"{len(filled)} of them held questions."
    )
    right = {row["trajectory"]: row["correct"] for row in STUDY.rows("trajectories")}
    stored: list[Row] = [
        row
        for row in STUDY.rows("experience")
        if row["event"] == "stored" and row["arm"] == "exgrpo"
    ]
    assert all(right[row["trajectory"]] for row in stored)
    assert verdicts["S6"].verdict == "contradicted"
    assert f"of {len(stored)} stored trajectories 0 are wrong" in verdicts["S6"].reading
    assert verdicts["S7"].verdict == "contradicted"
    apart = float(verdicts["S7"].reading.split()[-7])
    assert 0 < apart < 1e-6 and verdicts["S7"].reading.endswith("from w / (w + beta).")
