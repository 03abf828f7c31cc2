"""The queries about runs and the quality of their data, against plain loops over the rows."""

import json
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from golden_lake import Row, rows
from golden_scope import SCOPES, Scope, by
from replay_loops import assert_same, made, made_catalog

from analysis import data_quality as quality
from analysis.errors import UserError
from analysis.provenance import Attempts
from analysis.queries import answer

ARM = ("study", "arm", "seed", "run")
FLOATS = ("mean_entropy", "nll", "behaviour_nll", "advantage")
RATIOS = ("ratio_mean", "ratio_max", "weight_mean", "weight_max")

# By column of `quality_trajectories`: whether a trajectory counts. `ids`: how often each id is
# there; `known`: the ids of the questions.
FOUND: dict[str, Callable[[Row, Counter[str], set[str]], bool]] = {
    "duplicate_id": lambda row, ids, known: ids[row["trajectory"]] > 1,
    "no_question": lambda row, ids, known: row["question"] not in known,
    "no_response": lambda row, ids, known: not row["response"],
    "no_length": lambda row, ids, known: row["length"] is None,
    "ungraded": lambda row, ids, known: row["correct"] is None,
    "no_entropy": lambda row, ids, known: row["mean_entropy"] is None,
    "no_ratio": lambda row, ids, known: with_gradient(row) and row["ratio_mean"] is None,
    "no_source": lambda row, ids, known: bool(row["replayed"]) and row["source"] is None,
    "not_finite": lambda row, ids, known: not finite(row, *FLOATS, *RATIOS),
}


def finite(row: Row, *names: str) -> bool:
    return all(row[name] is None or math.isfinite(row[name]) for name in names)


def with_gradient(row: Row) -> bool:
    return bool(row["trained"] and row["advantage"] not in (None, 0))


def expected_trajectories(found: list[Row], known: set[str]) -> list[Row]:
    expected = []
    for key, group in by(found, *ARM).items():
        ids = Counter(row["trajectory"] for row in group)
        expected.append(
            dict(zip(ARM, key, strict=True))
            | {
                "trajectories": len(group),
                "replayed": sum(bool(row["replayed"]) for row in group),
                "with_gradient": sum(with_gradient(row) for row in group),
            }
            | {name: sum(test(row, ids, known) for row in group) for name, test in FOUND.items()}
        )
    return expected


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_quality_of_the_golden_lake(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    known = {row["question"] for row in rows("questions")}
    expected = expected_trajectories(list(scope.rows("trajectories")), known)
    assert_same(answer(golden, "quality_trajectories", **scope.asked), expected, *ARM)
    samples = [
        dict(zip(ARM, key, strict=True))
        | {
            "samples": len(group),
            "no_question": sum(row["question"] not in known for row in group),
            "ungraded": sum(row["correct"] is None for row in group),
            "no_response": sum(not row["response"] for row in group),
            "not_finite": sum(not finite(row, "mean_entropy", "nll") for row in group),
        }
        for key, group in by(scope.rows("evaluations"), *ARM).items()
    ]
    assert_same(answer(golden, "quality_evaluations", **scope.asked), samples, *ARM)
    assert_same(
        answer(golden, "quality_steps", **scope.asked),
        [steps_of(key, group) for key, group in by(scope.rows("steps"), *ARM).items()],
        *ARM,
    )


def steps_of(key: tuple[Any, ...], group: list[Row]) -> Row:
    there = {row["step"] for row in group}
    absent = sorted(set(range(min(there), max(there) + 1)) - there)
    wrong = [r["step"] for r in group if not finite(r, "loss", "grad_norm", "reward", "entropy")]
    skipped = [row["step"] for row in group if (row["skipped_updates"] or 0) > 0]
    return dict(zip(ARM, key, strict=True)) | {
        "first_step": min(there),
        "last_step": max(there),
        "steps": len(there),
        "absent": len(absent),
        "first_absent": absent[0] if absent else None,
        "no_entropy": sum(row["entropy"] is None for row in group),
        "not_finite": len(wrong),
        "first_not_finite": min(wrong, default=None),
        "skipped": len(skipped),
        "first_skipped": min(skipped, default=None),
    }


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_run_rows(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    steps = by(scope.rows("steps"), "run")
    names = ("status", "steps", "seconds", "attempts", "commit", "started", "finished", "hardware")
    more = ("world", "base_model", "tokenizer", "settings_hash", "settings", "versions")
    expected = []
    for run, row in scope.runs.items():
        of_run = steps.get((run,), [])
        settings = json.loads(row["settings"] or "{}")
        expected.append(
            {name: row[name] for name in ARM}
            | {name: row[name] for name in names[:2]}
            | {"planned": settings.get("training", {}).get("steps"), "seconds": row["seconds"]}
            | {
                name: sum(known) if (known := [r[name] for r in of_run if r[name]]) else None
                for name in ("sampled_tokens", "trained_tokens")
            }
            | {name: row[name] for name in (*names[3:], *more)}
        )
    assert {row["planned"] for row in expected} >= {16, None}
    assert_same(answer(golden, "run_rows", **scope.asked), expected, *ARM)


BROKEN = [
    made(1, 0, trajectory="twice", mean_entropy=0.5, length=3),
    made(1, 1, trajectory="twice", question="nobody's", mean_entropy=math.nan, length=3),
    made(1, 2, response="", correct=None, mean_entropy=0.1),
    made(2, 0, trained=True, advantage=0.5, mean_entropy=None, length=4),
    made(2, 1, trained=True, advantage=0.5, ratio_mean=math.inf, mean_entropy=0.1, length=4),
    made(2, 2, trained=True, advantage=0.0, mean_entropy=0.1, length=4),
    made(3, 0, replayed=True, question=None, response=None, mean_entropy=0.1, length=4),
    made(3, 1, replayed=True, source="x", weight_max=-math.inf, mean_entropy=0.1, length=4),
]
RUN = {"run": "r", "study": "s", "arm": "a", "seed": 0, "settings": "{}"}


@pytest.fixture(scope="module")
def broken() -> duckdb.DuckDBPyConnection:
    """A run whose log has everything that can be wrong."""
    steps = [{"run": "r", "step": step, "entropy": 0.1} for step in (2, 3, 6, 9)]
    steps[1] |= {"loss": math.nan, "skipped_updates": 2}
    steps[2] |= {"grad_norm": math.inf, "entropy": None, "skipped_updates": 0}
    sample = {"run": "r", "step": 0, "benchmark": "b", "correct": True, "response": "1"}
    samples = [
        sample | {"question": "q", "sample": 0, "nll": 0.1},
        sample | {"question": "q", "sample": 1, "correct": None, "mean_entropy": math.nan},
        sample | {"question": "else", "sample": 0, "response": None},
    ]
    return made_catalog(
        runs=[RUN],
        questions=[{"question": "q", "split": split} for split in ("train", "test_id")],
        trajectories=BROKEN,
        steps=steps,
        evaluations=samples,
    )


def one(connection: duckdb.DuckDBPyConnection, name: str) -> Row:
    frame = answer(connection, name)
    assert frame.height == 1
    return frame.row(0, named=True)


def whole(row: Row) -> Row:
    names = ("trained", "advantage", "length", "source", *FLOATS, *RATIOS)
    return dict.fromkeys(names) | {"study": "s", "arm": "a", "seed": 0} | row


def test_everything_that_can_be_wrong_is_counted(broken: duckdb.DuckDBPyConnection) -> None:
    found = one(broken, "quality_trajectories")
    assert found == expected_trajectories([whole(row) for row in BROKEN], {"q"})[0]
    assert {name: found[name] for name in FOUND} == {
        "duplicate_id": 2,
        "no_question": 2,
        "no_response": 2,
        "no_length": 1,
        "ungraded": 1,
        "no_entropy": 1,
        "no_ratio": 1,
        "no_source": 1,
        "not_finite": 3,
    }
    steps = one(broken, "quality_steps")
    assert (steps["absent"], steps["first_absent"], steps["no_entropy"]) == (4, 4, 1)
    assert (steps["not_finite"], steps["first_not_finite"]) == (2, 3)
    assert (steps["skipped"], steps["first_skipped"]) == (1, 3)
    samples = one(broken, "quality_evaluations")
    counts = ("samples", "no_question", "ungraded", "no_response", "not_finite")
    assert [samples[name] for name in counts] == [3, 1, 1, 1, 1]
    assert one(broken, "run_rows")["planned"] is None


@pytest.mark.parametrize("check", FOUND)
def test_the_rows_of_a_check_are_those_that_were_counted(
    broken: duckdb.DuckDBPyConnection, check: str
) -> None:
    ids = Counter(row["trajectory"] for row in BROKEN)
    expected = [
        (row["step"], row["slot"]) for row in BROKEN if FOUND[check](whole(row), ids, {"q"})
    ]
    found = answer(broken, "quality_rows", check=check)
    assert found.select("step", "slot").rows() == expected
    assert answer(broken, "quality_rows", check=check, most=1).height == 1


def test_an_unknown_check_is_an_error(broken: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UserError, match="no check of trajectories is called x"):
        answer(broken, "quality_rows", check="x")


def test_checks_say_how_many_and_in_a_word(broken: duckdb.DuckDBPyConnection) -> None:
    checks = {
        check.name: check
        for check in (
            *quality.trajectory_checks(one(broken, "quality_trajectories")),
            *quality.step_checks(one(broken, "quality_steps")),
            *quality.evaluation_checks(one(broken, "quality_evaluations")),
            *quality.coverage_checks(one(broken, "log_coverage")),
        )
    }
    ratio = checks["no_ratio"]
    assert (ratio.found, ratio.of, ratio.state, ratio.rows) == (1, 2, "look", True)
    assert "The first: step 4." in checks["absent"].meaning
    assert (checks["absent"].found, checks["absent"].of) == (4, 8)
    assert checks["step_numbers"].step == 3
    assert (checks["token_floats"].found, checks["token_floats"].of) == (8, 8)
    assert {check.state for check in quality.trajectory_checks(None)} == {"nothing to check"}
    assert quality.step_checks(None)[0].state == "nothing to check"
    assert quality.attempt_checks(Attempts(1, 0, 0))[0].state == "ok"
    again = quality.attempt_checks(Attempts(3, 2, 40))[0]
    assert (again.state, again.found) == ("look", 2) and "40 rows" in again.meaning
    assert quality.attempt_checks(None)[0].state == "nothing to check"


WHOLE = {"groups": 10, "groups_expected": 10}


@pytest.mark.parametrize(
    ("total", "logged", "sentence"),
    [
        (0, 0, "No trajectory is logged."),
        (10, 0, "No token entropies are logged for any of the 10 trajectories."),
        (200, 194, "cover 97 % of the trajectories (194 of 200)."),
        (100_000, 99_999, "cover 99.9 % of the trajectories (99,999 of 100,000)."),
        (3, 3, "cover 100 % of the trajectories (3 of 3)."),
    ],
)
def test_how_far_the_tokens_reach_is_a_sentence(total: int, logged: int, sentence: str) -> None:
    row = {"trajectories": total, "float_trajectories": logged} | WHOLE
    assert quality.coverage_sentence(row).endswith(sentence)


@pytest.mark.parametrize(
    ("logged", "groups", "sentence"),
    [
        (25_600, 97, "776 of at least 25,600 logged trajectories are here, in 97 of 3,200 groups."),
        (100, 97, "776 of the logged trajectories are here, in 97 of 3,200 groups."),
        (800, 3200, "776 of at least 800 logged trajectories are here."),
    ],
)
def test_a_sample_of_a_log_lacks_no_tokens(logged: int, groups: int, sentence: str) -> None:
    row = dict.fromkeys(("steps", "steps_expected", "small_groups", "validations"), 0)
    row |= {"trajectories": 776, "trajectories_expected": 776, "validations_expected": None}
    row |= {"float_trajectories": logged, "groups": groups, "groups_expected": 3200}
    assert quality.coverage_sentence(row) == f"A sample: {sentence}"
    checks = {check.name: check for check in quality.coverage_checks(row)}
    assert checks["token_floats"].state == "nothing to check"
    assert (checks["groups_not_here"].found, checks["groups_not_here"].of) == (3200 - groups, 3200)
    assert all(check.found >= 0 for check in checks.values())
