"""The queries of the screens Question and Lineage, each against plain Python over logged rows."""

import json
from collections import Counter
from itertools import pairwise
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import Row, rows
from golden_scope import SCOPES, Scope, by, share
from replay_loops import RUN, assert_same, made, made_catalog, replay_of

from analysis.queries import answer

RUNS = ("study", "arm", "seed", "run")


def visit_key(row: Row) -> tuple[int, int]:
    return row["step"], row["group"]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_question_list(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "question_list", **scope.asked)
    visits = by(scope.rows("visits"), "study", "question")
    tests = by(scope.rows("evaluations"), "study", "question")
    events = by(scope.rows("experience"), "study", "question")
    known = {row["question"]: row for row in rows("questions")}
    expected = [
        {"study": study, "question": question}
        | {name: known[question][name] for name in ("level", "text", "gold")}
        | of_visits(visits.get((study, question), []), events.get((study, question), []))
        | of_tests(tests.get((study, question), []))
        for study, question in visits.keys() | tests.keys()
    ]
    assert_same(frame, expected, "study", "question")
    assert frame["flips"].sum() > 0 < frame["replays"].sum()
    assert any(row["samples"] and row["visits"] == 0 for row in expected)


def of_visits(visits: list[Row], events: list[Row]) -> Row:
    runs = [sorted(its, key=visit_key) for its in by(visits, "run").values()]
    shares = [[row["success_share"] for row in its] for its in runs]
    sides = [[share > 0.5 for share in its if share not in (None, 0.5)] for its in shares]
    flips = sum(one != two for its in sides for one, two in pairwise(its))
    return {
        "runs": len(runs),
        "visits": len(visits),
        "graded": sum(row["graded"] for row in visits),
        "right": sum(row["right"] for row in visits),
        "first_share": share(its[0]["success_share"] for its in runs),
        "last_share": share(its[-1]["success_share"] for its in runs),
        "flips": flips,
        "replays": sum(row["replayed"] for row in visits),
        "retired": len({row["run"] for row in events if row["event"] == "retired"}),
    }


def of_tests(tests: list[Row]) -> Row:
    graded = [row for row in tests if row["correct"] is not None]
    return {
        "benchmarks": ", ".join(sorted({row["benchmark"] for row in tests})) or None,
        "samples": len(graded),
        "accuracy": share(row["correct"] for row in tests),
    }


def test_a_flip_crosses_one_half_and_an_ungraded_visit_is_none() -> None:
    answers = {1: [True, True], 2: [False, False], 3: [True, False], 4: [True, True], 5: [None] * 2}
    trajectories = [
        made(step, slot, correct=correct)
        for step, group in answers.items()
        for slot, correct in enumerate(group)
    ]
    with made_catalog(runs=[RUN], trajectories=trajectories) as catalog:
        row = answer(catalog, "question_list").row(0, named=True)
    assert (row["visits"], row["flips"]) == (5, 2)  # 3 is half right: passed over
    assert (row["first_share"], row["last_share"]) == (1.0, None)
    assert row["text"] is None  # no table of questions


PLAIN = {
    "question_visits": ("visits", ("step", "group")),
    "question_rollouts": ("trajectories", ("step", "group", "slot")),
    "candidates_of_question": ("candidates", ("step", "group", "rank")),
}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("name", PLAIN)
def test_the_rows_of_a_question(golden: duckdb.DuckDBPyConnection, name: str, scope: Scope) -> None:
    """These queries hand on rows as they were logged, with the study, arm and seed of the run."""
    table, key = PLAIN[name]
    keys = (*RUNS, "question", *key)
    every = answer(golden, name, **scope.asked)
    logged = list(scope.rows(table))
    assert_same(every, [{c: row[c] for c in every.columns} for row in logged], *keys)
    question = Counter(row["question"] for row in logged).most_common(1)[0][0]
    its = [row for row in logged if row["question"] == question]
    frame = answer(golden, name, **scope.asked, question=question)
    assert 1 < len(its) < len(logged)
    assert_same(frame, [{c: row[c] for c in frame.columns} for row in its], *keys)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_question_events_keep_the_order_in_which_they_happened(
    golden: duckdb.DuckDBPyConnection, scope: Scope
) -> None:
    logged = list(scope.rows("experience"))
    frame = answer(golden, "question_events", **scope.asked)
    in_order = sorted(
        logged,
        key=lambda row: (row["study"], row["arm"], row["seed"], row["run"], row["question"]),
    )  # stable: the steps, and the order within one, are those of the log
    assert frame.to_dicts() == [{c: row[c] for c in frame.columns} for row in in_order]
    one = in_order[0]["question"]
    alone = answer(golden, "question_events", **scope.asked, question=one)
    assert alone.to_dicts() == frame.filter(pl.col("question") == one).to_dicts()


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_question_evaluations(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "question_evaluations", **scope.asked)
    keys = ("study", "benchmark", "question", "arm", "step")
    expected = [
        dict(zip(keys, key, strict=True))
        | {
            "runs": len({row["run"] for row in its}),
            "samples": sum(row["correct"] is not None for row in its),
            "right": sum(row["correct"] is True for row in its),
            "accuracy": share(row["correct"] for row in its),
        }
        for key, its in by(scope.rows("evaluations"), *keys).items()
    ]
    assert_same(frame, expected, *keys)
    one = frame["question"][0]
    alone = answer(golden, "question_evaluations", **scope.asked, question=one)
    assert alone.equals(frame.filter(pl.col("question") == one))


@pytest.mark.parametrize("most", [50, 2])
@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_lineage_replayed(golden: duckdb.DuckDBPyConnection, scope: Scope, most: int) -> None:
    frame = answer(golden, "lineage_replayed", **scope.asked, most=most)
    replays = (row for row in scope.rows("trajectories") if row["replayed"])
    known = {row["question"]: row for row in rows("questions")}
    expected: list[Row] = []
    for its in by(replays, "run").values():
        found = [
            {name: them[0][name] for name in (*RUNS, "question", "level", "birth_step")}
            | {
                "trajectory": source,
                "text": known[them[0]["question"]]["text"],
                "replays": len(them),
                "first_step": min(row["step"] for row in them),
                "last_step": max(row["step"] for row in them),
                "chain_valid": them[0]["chain_valid"],
            }
            for (source,), them in by(its, "source").items()
        ]
        expected += sorted(found, key=lambda row: (-row["replays"], row["trajectory"]))[:most]
    ordered = sorted(expected, key=lambda row: (-row["replays"], row["run"], row["trajectory"]))
    assert frame.to_dicts() == [{c: row[c] for c in frame.columns} for row in ordered]
    assert frame.columns[0] == "study" and frame["replays"][0] > 1


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_lineage_rules(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "lineage_rules", **scope.asked)
    steps = by(scope.rows("steps"), "run")
    expected = []
    for run in scope.runs.values():
        settings: dict[str, Any] = json.loads(run["settings"] or "{}")
        experience, buffer = settings.get("experience", {}), settings.get("buffer", {})
        on = [row["step"] for row in steps.get((run["run"],), []) if row["replay_on"]]
        expected.append(
            {name: run[name] for name in (*RUNS, "status")}
            | {name: experience.get(name) for name in ("replay", "order", "metric")}
            | {"join_source": settings.get("join", {}).get("source")}
            | {
                name: buffer.get(name)
                for name in ("store", "store_truncated", "collect_before_start")
            }
            | {"on_step": min(on, default=None)}
        )
    assert_same(frame, expected, "study", "arm", "seed", "run")
    assert {row["replay"] for row in expected} >= {None, "trajectory"}


def test_an_outside_source_is_listed_by_its_id_and_an_unknown_one_is_not() -> None:
    nobody = made(3, replayed=True, source=None)
    trajectories = [made(1), replay_of("pool:3:0:1", 2), nobody, replay_of("pool:3:0:1", 4)]
    with made_catalog(runs=[RUN], trajectories=trajectories) as catalog:
        (row,) = answer(catalog, "lineage_replayed").to_dicts()
    assert (row["trajectory"], row["replays"]) == ("pool:3:0:1", 2)
    assert (row["first_step"], row["last_step"]) == (2, 4)
