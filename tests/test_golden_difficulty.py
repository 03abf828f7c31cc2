"""Gain by question, buckets, forgetting, budgets: each query against a plain loop.

The loops run over the golden lake; where it has no such case, rows made by hand stand for it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from statistics import mean
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import rows
from golden_scope import SCOPES, Scope, by, first_step
from replay_loops import (
    RUN,
    History,
    Row,
    Rows,
    assert_same,
    difference,
    histories,
    made,
    made_catalog,
    mean_or_none,
    replay_of,
)

from analysis.difficulty import difficulty
from analysis.queries import answer

RUN_KEYS = ("study", "arm", "seed", "run")


def visited(scope: Scope) -> Iterator[History]:
    """The history of every question in the runs of the scope."""
    return histories(list(scope.rows("trajectories")), list(scope.runs.values()))


def names(history: History) -> Row:
    return {key: getattr(history, key) for key in RUN_KEYS}


def known(values: list[float | None]) -> list[float]:
    return [value for value in values if value is not None]


# bucket_gain_questions


def gains(found: list[History]) -> Rows:
    sizes: dict[str, int] = defaultdict(int)
    for each in found:
        for visit in each.visits:
            sizes[each.run] = max(sizes[each.run], visit.first["group_size"])
    cells: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for each in found:
        for place, visit in enumerate(each.visits):
            bucket = visit.first["bucket_drawn"]
            previous = each.visits[place - 1] if place else None
            following = each.visits[place + 1] if place + 1 < len(each.visits) else None
            if bucket is None and previous:
                k, size = previous.first["group_successes"], previous.first["group_size"]
                bucket = None if not size else sizes[each.run] if k == size else k
            change = difference(following.share if following else None, visit.share)
            advantages = [row["advantage"] for row in visit.rows if row["trained"] is not False]
            key = (*names(each).values(), visit.first["experiential"], bucket, each.question)
            cells[key].append(
                {
                    "signal": 0 < visit.first["group_successes"] < visit.first["group_size"],
                    "advantage": [abs(value) for value in known(advantages)],
                    "change": change,
                    "gap": following.step - visit.step if following and change is not None else 0,
                    "naive": difference(visit.share, previous.share if previous else None),
                }
            )
    columns = (*RUN_KEYS, "experiential", "bucket", "question")
    return [
        dict(zip(columns, key, strict=True))
        | {
            "group_size": sizes[key[3]],
            "visits": len(visits),
            "signal": sum(visit["signal"] for visit in visits),
            "advantage": total([value for visit in visits for value in visit["advantage"]]),
            "followed": len(known([visit["change"] for visit in visits])),
            "change": sum(known([visit["change"] for visit in visits])),
            "gap": sum(visit["gap"] for visit in visits),
            "before": len(known([visit["naive"] for visit in visits])),
            "naive_change": sum(known([visit["naive"] for visit in visits])),
        }
        for key, visits in cells.items()
    ]


def total(values: list[float]) -> float | None:
    return sum(values) if values else None


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_bucket_gain_questions(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = gains(list(visited(scope)))
    frame = answer(golden, "bucket_gain_questions", **scope.asked)
    assert_same(frame, expected, *RUN_KEYS, "experiential", "bucket", "question")
    assert {row["bucket"] for row in expected} >= {None, 0, 8}
    assert any(row["experiential"] and row["change"] for row in expected)
    assert any(row["advantage"] == 0 for row in expected)
    assert any(row["followed"] < row["visits"] for row in expected)


def test_a_gain_counts_what_was_graded_and_trained_on() -> None:
    """Solved with one ungraded, then ungraded, then half right; one trajectory dropped."""
    answers = [(True, None), (None, None), (True, False)]
    outcomes = [(1, 1), (0, 0), (1, 2)]
    found = [
        made(step, slot, correct=correct, group_successes=k, group_size=size, advantage=-0.5)
        | {"trained": False if (step, slot) == (3, 1) else None}
        for step, (visit, (k, size)) in enumerate(zip(answers, outcomes, strict=True), start=1)
        for slot, correct in enumerate(visit)
    ]
    with made_catalog(runs=[RUN], trajectories=found) as connection:
        frame = answer(connection, "bucket_gain_questions")
    columns = ("bucket", "group_size", "visits", "signal", "advantage", "followed", "before")
    assert frame.select(columns).rows() == [
        (2, 2, 1, 0, 1.0, 0, 0),  # after 1 of 1 right: solved
        (None, 2, 2, 1, 1.5, 0, 0),  # the first, and one after a visit with no graded answer
    ]


def test_difficulty_is_that_of_the_log() -> None:
    found = pl.DataFrame(
        [
            {key: row[key] for key in ("group_successes", "group_size", "difficulty")}
            for row in rows("trajectories")
        ]
    ).with_columns(made=difficulty(pl.col("group_successes"), pl.col("group_size")))
    logged = found.filter(pl.col("difficulty").is_not_null())
    assert logged["made"].equals(logged["difficulty"])
    assert set(logged["made"]) == {"hard", "medium", "easy"}
    rest = found.filter(pl.col("difficulty").is_null())
    assert set(rest["made"]) == {"failed", "solved"}


# bucket_occupancy


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize("every", [5, 7])
def test_bucket_occupancy(golden: duckdb.DuckDBPyConnection, scope: Scope, every: int) -> None:
    logged = list(scope.rows("steps"))
    last = {run: max(row["step"] for row in of) for (run,), of in by(logged, "run").items()}
    expected = [
        {key: row[key] for key in (*RUN_KEYS, "step")}
        | {
            "bucket": place + 1,
            "questions": questions,
            "retired_questions": row["retired_questions"],
            "train_questions": 20,
        }
        for row in logged
        if row["step"] % every == 0 or row["step"] == last[row["run"]]
        for place, questions in enumerate(row["bucket_sizes"] or [])
    ]
    frame = answer(golden, "bucket_occupancy", every=every, **scope.asked)
    assert_same(frame, expected, *RUN_KEYS, "step", "bucket")
    assert any(row["questions"] for row in expected)
    assert any(row["retired_questions"] for row in expected)


# retired_later


def later(found: list[History], events: Rows, span: int, window: int) -> Rows:
    retirements: dict[tuple[str, str], int] = {}
    for event in events:
        if event["event"] == "retired":
            key = event["run"], event["question"]
            retirements[key] = min(event["step"], retirements.get(key, event["step"]))
    asked = []
    for each in found:
        end = retirements.get((each.run, each.question))
        for visit in each.visits:
            if visit.share is not None and visit.first["experiential"] is not True:
                after = None if end is None or visit.step <= end else visit.step - end
                asked.append((each, first_step(visit.step, window), after, visit.share))
    cells: dict[tuple[Any, ...], list[tuple[float, float]]] = defaultdict(list)
    for each, place, after, share in asked:
        if after is None:
            continue
        since = first_step(after, span)
        beside = [row for row in asked if (row[0].run, row[1], row[2]) == (each.run, place, None)]
        if beside:
            key = (*names(each).values(), since, True, each.question)
            cells[key].append((1.0, share))
        for other, _, _, of_other in beside:
            key = (*names(other).values(), since, False, other.question)
            cells[key].append((1 / len(beside), of_other))
    columns = (*RUN_KEYS, "since", "retired", "question")
    return [
        dict(zip(columns, key, strict=True))
        | {
            "weight": sum(weight for weight, _ in visits),
            "share": sum(weight * share for weight, share in visits),
            "lost": sum(weight for weight, share in visits if share <= 0.5),
        }
        for key, visits in cells.items()
    ]


@pytest.mark.parametrize("scope", SCOPES, ids=str)
@pytest.mark.parametrize(("span", "window"), [(25, 10), (3, 4)])
def test_retired_later(
    golden: duckdb.DuckDBPyConnection, scope: Scope, span: int, window: int
) -> None:
    frame = answer(golden, "retired_later", span=span, window=window, **scope.asked)
    expected = later(list(visited(scope)), rows("experience"), span, window)
    keys = (*RUN_KEYS, "since", "retired", "question")
    assert_same(frame.drop("visits"), expected, *keys)
    assert any(row["retired"] for row in expected)
    assert any(row["retired"] and row["lost"] for row in expected) or "some" in scope.name
    assert any(not row["retired"] and row["weight"] != 1 for row in expected)
    # Both kinds weigh the same in every run and span: they are asked at the same time.
    for of in by(expected, "run", "since").values():
        sums = [sum(row["weight"] for row in of if row["retired"] is kind) for kind in (0, 1)]
        assert sums[0] == pytest.approx(sums[1])


def test_what_stands_beside_a_retired_question() -> None:
    """a retires at 2, comes back at 4 and 14; at 4 b and c are asked, at 14 only the buffer's d."""
    answers = {1: "abc", 2: "ab", 4: "abc", 14: "ad"}
    found = [
        made(step, slot, group=ord(question), question=question, correct=slot == 0)
        | {"experiential": question == "d"}
        for step, questions in answers.items()
        for question in questions
        for slot in range(3)
    ]
    retired = [{"run": "r", "step": step, "question": "a", "event": "retired"} for step in (2, 9)]
    with made_catalog(runs=[RUN], trajectories=found, experience=retired) as connection:
        frame = answer(connection, "retired_later", span=10)
    columns = ("since", "retired", "question", "visits", "weight", "share", "lost")
    third = pytest.approx(1 / 3)
    # In the window of step 4 b was asked three times, c twice, a twice before it retired.
    # At 14 nothing stands beside a.
    assert frame.select(columns).rows() == [
        (1, False, "a", 2, pytest.approx(2 / 7), pytest.approx(2 / 21), pytest.approx(2 / 7)),
        (1, False, "b", 3, pytest.approx(3 / 7), pytest.approx(1 / 7), pytest.approx(3 / 7)),
        (1, False, "c", 2, pytest.approx(2 / 7), pytest.approx(2 / 21), pytest.approx(2 / 7)),
        (1, True, "a", 1, 1.0, third, 1.0),
    ]


# solved_questions


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_solved_questions(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = []
    for each in visited(scope):
        graded = [(visit.step, visit.share) for visit in each.visits if visit.share is not None]
        solved = [place for place, (_, share) in enumerate(graded) if share == 1]
        if solved:
            after = [share for _, share in graded[solved[0] + 1 :]]
            expected.append(
                names(each)
                | {
                    "question": each.question,
                    "solved_step": graded[solved[0]][0],
                    "later": len(after),
                    "later_failed": after.count(0),
                    "last_share": after[-1] if after else None,
                }
            )
    frame = answer(golden, "solved_questions", **scope.asked)
    assert_same(frame, expected, *RUN_KEYS, "question")
    assert any(row["later"] == 0 for row in expected)
    assert any(row["later"] > 1 for row in expected)
    assert any(row["last_share"] not in (None, 1) for row in expected)


# validation_budgets


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_validation_budgets(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    measured = {
        (*(row[key] for key in RUN_KEYS), row["step"])
        for row in scope.rows("evaluations")
        if row["benchmark"] == "validation"
    }
    logged = {(row["run"], row["step"]): row for row in scope.rows("steps")}
    groups = {
        (row["run"], row["step"], row["group"])
        for row in scope.rows("trajectories")
        if row["experiential"] is not True
    }
    expected = []
    for key in measured:
        *_, run, step = key
        spent = logged.get((run, step), defaultdict(int))
        expected.append(
            dict(zip((*RUN_KEYS, "step"), key, strict=True))
            | {
                "distinct_questions": spent["distinct_questions"],
                "fresh_questions": sum(of == run and at <= step for of, at, _ in groups),
                "sampled_tokens": spent["total_sampled_tokens"],
                "seconds": spent["run_seconds"],
            }
        )
    frame = answer(golden, "validation_budgets", **scope.asked)
    assert_same(frame, expected, *RUN_KEYS, "step")
    assert {row["step"] for row in expected} >= {0, 16}
    assert any(row["distinct_questions"] < row["fresh_questions"] for row in expected)


def test_a_budget_that_was_not_logged_is_null() -> None:
    sample = {"run": "r", "benchmark": "validation", "question": "q", "sample": 0}
    steps = [{"run": "r", "step": 2, "run_seconds": 4.0}]
    tested = [sample | {"step": step} for step in (0, 2)]
    with made_catalog(runs=[RUN], steps=steps, evaluations=tested) as connection:
        frame = answer(connection, "validation_budgets")
    assert [row[5:] for row in frame.rows()] == [(0, 0, 0, 0.0), (None, None, None, 4.0)]


# run_updates


def replay_rule(run: Row) -> str | None:
    experience = json.loads(run["settings"])["experience"] if run["settings"] else {}
    rule = "never" if experience.get("replay") == "none" else experience.get("start")
    return None if rule is None else str(rule)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_run_updates(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = []
    for key, of in by(scope.rows("steps"), *RUN_KEYS).items():
        expected.append(
            dict(zip(RUN_KEYS, key, strict=True))
            | {
                "steps": len(of),
                "groups": mean(row["groups"] for row in of),
                "signal_groups": mean_or_none(row["signal_groups"] for row in of),
                "updated_groups": mean_or_none(row["updated_groups"] for row in of),
                "grad_norm": mean_or_none(row["grad_norm"] for row in of),
                "replay_rule": replay_rule(scope.runs[key[-1]]),
                "replay_from": min((row["step"] for row in of if row["replay_on"]), default=None),
            }
        )
    assert_same(answer(golden, "run_updates", **scope.asked), expected, *RUN_KEYS)
    assert any(row["groups"] > row["updated_groups"] > 0 for row in expected)
    assert {row["replay_from"] is None for row in expected} == {True, False}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_step_phases(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    phases = ("rollout_seconds", "select_seconds", "update_seconds", "seconds")
    expected = [
        dict(zip(RUN_KEYS, key, strict=True))
        | {"steps": len(of)}
        | {name: mean_or_none(row[name] for row in of) for name in phases}
        | {"buffer_bytes": max(of, key=lambda row: row["step"])["buffer_bytes"]}
        for key, of in by(scope.rows("steps"), *RUN_KEYS).items()
    ]
    assert any(row["buffer_bytes"] for row in expected)
    assert_same(answer(golden, "step_phases", **scope.asked), expected, *RUN_KEYS)


def test_means_of_updates_leave_out_what_was_not_logged() -> None:
    steps = [
        {"run": "r", "step": step, "groups": 4, "signal_groups": 3, "updated_groups": updated}
        | {"grad_norm": norm}
        for step, updated, norm in ((1, 2, 0.5), (2, 0, 0.0), (3, 1, None))
    ]
    with made_catalog(runs=[RUN], steps=steps) as connection:
        (row,) = answer(connection, "run_updates").rows()
    assert row[4:] == (3, 4.0, 3.0, 1.0, 0.25, None, None)


def test_a_replayed_answer_is_no_fresh_one() -> None:
    """Solved and share count fresh answers: the replayed success of the second visit is none."""
    found = [
        made(1, 0, correct=True),
        replay_of("r:1:0:0", 2),
        made(2, 1, correct=False, experiential=True, bucket_drawn=2),
        made(3, 0, correct=True),
    ]
    with made_catalog(runs=[RUN], trajectories=found) as connection:
        (row,) = answer(connection, "solved_questions").to_dicts()
    assert (row["later"], row["later_failed"], row["last_share"]) == (2, 1, 1.0)
