"""Signal, forgetting, gain and selection: each query against a plain loop over the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

from collections import defaultdict
from statistics import mean, median
from typing import Any

import duckdb
import pytest
from golden_lake import rows as golden_rows
from replay_loops import (
    RUN,
    History,
    Rows,
    assert_same,
    difference,
    histories,
    made,
    made_catalog,
    mean_or_none,
    replay_of,
    start_of,
)

from analysis.queries import answer


@pytest.fixture(scope="module")
def history() -> list[History]:
    return list(histories(golden_rows("trajectories"), golden_rows("runs")))


# zero_advantage_groups

CELL = ("study", "arm", "window_start", "experiential", "bucket")


def zero_groups(history: list[History], window: int) -> Rows:
    cells = defaultdict(list)
    for each in history:
        for place, visit in enumerate(each.visits):
            advantages = [row["advantage"] for row in visit.rows if row["trained"] is not False]
            known = [value for value in advantages if value is not None]
            if known:
                drawn = visit.first["experiential"]
                key = start_of(visit.step, window), drawn, each.successes_before(place)
                cells[each.study, each.arm, *key].append((visit, not any(known)))
    expected = []
    for key, groups in cells.items():
        zero = [visit for visit, without in groups if without]
        fresh = [{row["correct"] for row in visit.fresh} - {None} for visit in zero]
        row = dict(zip(CELL, key, strict=True))
        expected.append(
            row
            | {
                "groups": len(groups),
                "zero": len(zero),
                "zero_share": len(zero) / len(groups),
                "solved": sum(False not in answers for answers in fresh),
                "failed": sum(True not in answers for answers in fresh),
            }
        )
    return expected


@pytest.mark.parametrize("window", [50, 8])
def test_zero_advantage_groups(
    golden: duckdb.DuckDBPyConnection, history: list[History], window: int
) -> None:
    frame = answer(golden, "zero_advantage_groups", window=window)
    expected = zero_groups(history, window)
    assert_same(frame, expected, *CELL)
    assert any(row["solved"] for row in expected) and any(row["failed"] for row in expected)
    assert any(row["experiential"] and row["zero"] for row in expected)
    assert any(0 < row["zero_share"] < 1 for row in expected)


def test_a_replay_gives_signal_where_all_fresh_ones_fail() -> None:
    """k counts only the fresh here, so k = 0 in both groups; the first has a replayed success."""
    rows = [
        replay_of("r:0:0:0", 1, advantage=0.5, bucket_drawn=1),
        made(1, 1, advantage=-0.5, correct=False, experiential=True, bucket_drawn=1),
        made(1, 2, advantage=0.7, trained=False, correct=True, experiential=True, bucket_drawn=1),
        made(2, 0, advantage=0.0, correct=False),
        made(2, 1, advantage=0.0, correct=False),
        made(2, 2, advantage=0.9, trained=False, correct=False),  # dropped: it teaches nothing
    ]
    rows = [row | {"group_successes": 0, "group_size": 2} for row in rows]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        frame = answer(connection, "zero_advantage_groups")
    columns = ("experiential", "bucket", "groups", "zero", "solved", "failed")
    assert frame.select(columns).rows() == [(False, 0, 1, 1, 0, 1), (True, 1, 1, 0, 0, 0)]


# question_flips


def flips(history: list[History], events: Rows, solved: float, lost: float) -> Rows:
    retired: dict[tuple[str, str], int] = {}
    for event in events:
        if event["event"] == "retired":
            key = event["run"], event["question"]
            retired[key] = min(event["step"], retired.get(key, event["step"]))
    by_run: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for each in history:
        graded = [(visit.step, visit.share) for visit in each.visits if visit.share is not None]
        if not graded:
            continue
        first = next((place for place, (_, share) in enumerate(graded) if share >= solved), None)
        later = [] if first is None else [share for _, share in graded[first + 1 :]]
        end = retired.get((each.run, each.question))
        after = [] if end is None else [share for step, share in graded if step > end]
        by_run[each.study, each.arm, each.seed, each.run].append(
            {
                "solve_step": None if first is None else graded[first][0],
                "later": later,
                "retired": end is not None,
                "after": after,
            }
        )
    expected = []
    for (study, arm, seed, run), questions in by_run.items():
        solves = [each["solve_step"] for each in questions if each["solve_step"] is not None]
        revisited = [each["later"] for each in questions if each["later"]]
        lost_ones = [later for later in revisited if min(later) <= lost]
        checked = [each["after"] for each in questions if each["after"]]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "seed": seed,
                "run": run,
                "questions": len(questions),
                "solved": len(solves),
                "first_solve_step": median(solves) if solves else None,
                "revisited": len(revisited),
                "lost": len(lost_ones),
                "lost_share": len(lost_ones) / len(revisited) if revisited else None,
                "lost_at_last": sum(later[-1] <= lost for later in revisited),
                "retired": sum(each["retired"] for each in questions),
                "retired_revisited": len(checked),
                "retired_lost": sum(min(shares) <= lost for shares in checked),
                "retired_share": mean_or_none(share for shares in checked for share in shares),
            }
        )
    return expected


@pytest.mark.parametrize(("solved", "lost"), [(1.0, 0.5), (0.75, 0.875)])
def test_question_flips(
    golden: duckdb.DuckDBPyConnection, history: list[History], solved: float, lost: float
) -> None:
    frame = answer(golden, "question_flips", solved=solved, lost=lost)
    expected = flips(history, golden_rows("experience"), solved, lost)
    assert_same(frame, expected, "study", "arm", "seed", "run")
    assert any(row["revisited"] for row in expected)
    assert any(row["retired_revisited"] for row in expected)
    if lost > 0.5:  # with the defaults nothing is lost in so short a study: see by hand
        assert any(row["lost"] > row["lost_at_last"] for row in expected)
        assert any(row["retired_lost"] for row in expected)


def test_a_question_lost_and_found_by_hand() -> None:
    """a: solved, lost, solved again. b: solved, retired twice, lost for good. c: never solved."""
    shares = {"a": [1, 0, 1], "b": [0, 1, 0], "c": [0, 0, 0]}
    rows = [
        made(step, question=question, group=group, correct=bool(share))
        for group, (question, visits) in enumerate(shares.items())
        for step, share in enumerate(visits, start=1)
    ]
    retired = [{"run": "r", "step": step, "question": "b", "event": "retired"} for step in (2, 3)]
    with made_catalog(runs=[RUN], trajectories=rows, experience=retired) as connection:
        (row,) = answer(connection, "question_flips").to_dicts()
    counts = {name: row[name] for name in list(row)[4:]}
    assert counts == {
        "questions": 3,
        "solved": 2,
        "first_solve_step": 1.5,
        "revisited": 2,
        "lost": 2,
        "lost_share": 1.0,
        "lost_at_last": 1,
        "retired": 1,
        "retired_revisited": 1,
        "retired_lost": 1,
        "retired_share": 0.0,
    }


# difficulty_vs_gain


def test_difficulty_vs_gain(golden: duckdb.DuckDBPyConnection, history: list[History]) -> None:
    cells = defaultdict(list)
    for each in history:
        for place, visit in enumerate(each.visits):
            if (bucket := each.bucket(place)) is not None:
                after = each.visits[place + 1].share if place + 1 < len(each.visits) else None
                change = difference(after, visit.share)
                key = each.study, each.arm, visit.first["experiential"], bucket
                cells[key].append((visit, change))
    expected = []
    for (study, arm, experiential, bucket), visits in cells.items():
        changes = [change for _, change in visits if change is not None]
        signal = [
            0 < visit.first["group_successes"] < visit.first["group_size"] for visit, _ in visits
        ]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "experiential": experiential,
                "bucket": bucket,
                "groups": len(visits),
                "success_share": mean_or_none(visit.share for visit, _ in visits),
                "signal_share": mean(signal),
                "next_visits": len(changes),
                "change_next": mean_or_none(changes),
            }
        )
    frame = answer(golden, "difficulty_vs_gain")
    assert_same(frame, expected, "study", "arm", "experiential", "bucket")
    assert any(row["experiential"] and row["change_next"] for row in expected)
    assert any(not row["experiential"] and row["change_next"] for row in expected)
    assert any(row["next_visits"] < row["groups"] for row in expected)


def test_visits_without_a_graded_answer_have_no_change() -> None:
    """The second of three is not graded: nothing to change to, and nothing to change from."""
    answers = [(True, False), (None, None), (True, True)]
    group = {"experiential": True, "bucket_drawn": 1, "group_successes": 1, "group_size": 2}
    rows = [
        made(step, slot, correct=correct, **group)
        for step, visit in enumerate(answers, start=1)
        for slot, correct in enumerate(visit)
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        (row,) = answer(connection, "difficulty_vs_gain").to_dicts()
    assert (row["groups"], row["success_share"], row["signal_share"]) == (3, 0.75, 1.0)
    assert (row["next_visits"], row["change_next"]) == (0, None)


@pytest.mark.parametrize("name", ["difficulty_vs_gain", "replay_value"])
def test_a_visit_before_is_judged_by_its_own_size(name: str) -> None:
    """7 of 8, then one rollout ungraded: bucket 7. 7 of 7, then all graded: none."""
    rows = []
    for question, sizes in {"q": (8, 7, 8), "solved": (7, 8, 8)}.items():
        for step, size in enumerate(sizes, start=1):
            group = {"question": question, "group": len(question), "group_successes": 7}
            group |= {"group_size": size, "bucket": 7 if size > 7 else None}
            graded = [True] * 7 + [False] * (size - 7) + [None] * (8 - size)
            rows += [made(step, slot, correct=value, **group) for slot, value in enumerate(graded)]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        (row,) = answer(connection, name).to_dicts()
        before = "select visit, previous_bucket from visits where question = 'q' order by visit"
        assert connection.sql(before).fetchall() == [(1, None), (2, 7), (3, None)]
    assert row["bucket"] == 7
    if name == "difficulty_vs_gain":  # q at 2, solved at 3
        assert (row["groups"], row["success_share"]) == (2, (1 + 7 / 8) / 2)
        assert (row["next_visits"], row["change_next"]) == (1, -1 / 8)
    else:
        assert (row["plain"], row["change_plain"]) == (1, -1 / 8)


# selection_audit


def test_selection_audit(golden: duckdb.DuckDBPyConnection) -> None:
    runs = {row["run"]: row for row in golden_rows("runs")}
    draws = defaultdict(list)
    for row in golden_rows("candidates"):
        arm = runs[row["run"]]["study"], runs[row["run"]]["arm"]
        draws[arm, row["run"], row["step"], row["group"]].append(row)
    agreed: dict[tuple[str, str], Rows] = defaultdict(list)
    for (arm, *_), rows in draws.items():
        if len(rows) > 1:
            by_age = sorted(rows, key=lambda row: row["birth_step"])  # ties go to the older one
            picks = {
                metric: min(by_age, key=lambda row: row[metric])["source"]
                for metric in (
                    "mean_entropy",
                    "released",
                    "summed_entropy",
                    "length",
                    "nll",
                    "birth_entropy",
                )
            }
            agreed[arm].append(picks | {"stored": len(rows)})
    pairs = {
        "released": ("released", "mean_entropy"),
        "summed_entropy": ("summed_entropy", "mean_entropy"),
        "shortest": ("length", "mean_entropy"),
        "nll": ("nll", "mean_entropy"),
        "birth_entropy": ("birth_entropy", "mean_entropy"),
        "released_is_shortest": ("released", "length"),
        "released_is_summed": ("released", "summed_entropy"),
    }
    expected = [
        {
            "study": study,
            "arm": arm,
            "draws": len(picks),
            "candidates": mean(pick["stored"] for pick in picks),
            "chance": mean(1 / pick["stored"] for pick in picks),
        }
        | {name: mean(pick[a] == pick[b] for pick in picks) for name, (a, b) in pairs.items()}
        for (study, arm), picks in agreed.items()
    ]
    assert_same(answer(golden, "selection_audit"), expected, "study", "arm")
    assert all(row["draws"] > 10 for row in expected)
    assert any(0 < row["released"] < 1 for row in expected)
