"""What replay spreads and what it is worth: each query against a plain loop over the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

import hashlib
from collections import defaultdict
from statistics import mean
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import rows as golden_rows
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
    marked,
    mean_or_none,
    replay_of,
)

from analysis.errors import UserError
from analysis.queries import answer

MARKERS = ("flawed", "shortcut", "code", "repetition")
BY_MARKER = ("snowball_dose_response", "snowball_event_study", "marker_inheritance")


@pytest.fixture(scope="module")
def trajectories() -> Rows:
    return golden_rows("trajectories")


@pytest.fixture(scope="module")
def history(trajectories: Rows) -> list[History]:
    return list(histories(trajectories, golden_rows("runs")))


def shares(rows: Rows, marker: str) -> tuple[int, int]:
    """Right answers whose marker is known, and those marked."""
    found = [marked(row, marker) for row in rows if row["correct"]]
    known = [value for value in found if value is not None]
    return len(known), sum(known)


def ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


@pytest.mark.parametrize("name", BY_MARKER)
def test_an_unknown_marker_is_an_error(golden: duckdb.DuckDBPyConnection, name: str) -> None:
    with pytest.raises(UserError, match=r"flawed, shortcut, code or repetition, not flaw$"):
        answer(golden, name, marker="flaw")


# snowball_dose_response


def dose_response(history: list[History], marker: str, lag: int = 1, most: int = 5) -> Rows:
    cells = defaultdict(list)
    for each in history:
        replayed = [
            sum(bool(marked(row, marker)) for row in visit.replays) for visit in each.visits
        ]
        doses = [
            min(sum(replayed[: max(place - lag + 1, 0)]), most) for place in range(len(each.visits))
        ]
        counts = [shares(visit.fresh, marker) for visit in each.visits]
        own = [ratio(count, right) for right, count in counts]
        for place, (count, dose) in enumerate(zip(counts, doses, strict=True)):
            came = place >= lag and replayed[place - lag] > 0
            change = difference(own[place], own[place - lag]) if came else None
            cells[each.study, each.arm, each.seed, each.run, dose].append(
                (each.question, count, change)
            )
    expected = []
    for (study, arm, seed, run, dose), visits in cells.items():
        right = sum(count[0] for _, count, _ in visits)
        flawed = sum(count[1] for _, count, _ in visits)
        changes = [change for _, _, change in visits if change is not None]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "seed": seed,
                "run": run,
                "dose": dose,
                "questions": len({question for question, _, _ in visits}),
                "visits": len(visits),
                "right_fresh": right,
                "marked": flawed,
                "marked_share": ratio(flawed, right),
                "compared": len(changes),
                "change": mean_or_none(changes),
            }
        )
    return expected


@pytest.mark.parametrize(
    ("marker", "lag", "most"),
    [("flawed", 1, 5), ("flawed", 1, 2), ("flawed", 2, 5)]
    + [(marker, 1, 5) for marker in ("shortcut", "code", "repetition")],
)
def test_snowball_dose_response(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str, lag: int, most: int
) -> None:
    frame = answer(golden, "snowball_dose_response", marker=marker, lag=lag, most=most)
    expected = dose_response(history, marker, lag, most)
    assert_same(frame, expected, "study", "arm", "seed", "run", "dose")
    if marker in ("flawed", "shortcut"):  # the other two occur in the import only: see by hand
        assert {row["dose"] for row in expected} >= {0, 1, 2}
        assert any(row["change"] for row in expected)


# snowball_event_study


def event_study(history: list[History], marker: str, reach: int = 3) -> Rows:
    cells: dict[tuple[Any, ...], dict[bool, list[Rows]]] = defaultdict(
        lambda: {True: [], False: []}
    )
    for each in history:
        start = next((place for place, visit in enumerate(each.visits) if visit.replays), None)
        if start is None:
            continue
        event = each.visits[start]
        found = [marked(row, marker) for row in event.replays]
        if not any(found) and None in found:
            continue  # not known which it is
        sources = {row["source"] for row in event.replays}
        for place, visit in enumerate(each.visits):
            if abs(place - start) <= reach:
                rows = [row for row in visit.fresh if row["trajectory"] not in sources]
                cell = each.study, each.arm, event.first["bucket_drawn"], place - start
                cells[cell][any(found)].append(rows)
    expected = []
    for (study, arm, bucket, relative), sides in cells.items():
        row: Row = {"study": study, "arm": arm, "bucket": bucket, "relative": relative}
        for name, side in (("treated", True), ("control", False)):
            right, count = shares([row for rows in sides[side] for row in rows], marker)
            row |= {
                name: len(sides[side]),
                f"{name}_right": right,
                f"{name}_share": ratio(count, right),
            }
        row["gap"] = difference(row["treated_share"], row["control_share"])
        expected.append(row)
    at_event = {
        (row["study"], row["arm"], row["bucket"]): row["gap"]
        for row in expected
        if not row["relative"]
    }
    for row in expected:
        start = at_event[row["study"], row["arm"], row["bucket"]]
        row["effect"] = difference(row["gap"], start) if row["relative"] >= 0 else None
    return expected


@pytest.mark.parametrize(("marker", "reach"), [("flawed", 3), ("shortcut", 1), ("code", 3)])
def test_snowball_event_study(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str, reach: int
) -> None:
    frame = answer(golden, "snowball_event_study", marker=marker, reach=reach)
    expected = event_study(history, marker, reach)
    assert_same(frame, expected, "study", "arm", "bucket", "relative")
    assert {row["relative"] for row in expected} >= {-1, 0, 1}
    assert any(row["control_right"] for row in expected)
    if marker == "flawed":  # the golden lake has too few replays of the others: see by hand
        assert any(row["effect"] for row in expected if row["relative"] > 0)


# marker_inheritance


def pieces(text: str) -> set[str]:
    return {text[place : place + 8] for place in range(max(len(text) - 7, 1))}


def jaccard(one: str, other: str) -> float:
    return len(pieces(one) & pieces(other)) / len(pieces(one) | pieces(other))


def chosen_first(row: Row) -> int:
    return int.from_bytes(hashlib.md5(row["trajectory"].encode()).digest()[8:], "little")


def inheritance(history: list[History], marker: str, most: int = 100) -> Rows:
    replays: dict[str, Rows] = defaultdict(list)
    for each in history:
        found = [row for visit in each.visits for row in visit.replays if marked(row, marker)]
        replays[each.run] += found[:1]
    shuffled: dict[tuple[str, str], tuple[Row, Row | None]] = {}
    for run, rows in replays.items():
        rows.sort(key=lambda row: (row["level"], hashlib.md5(row["question"].encode()).hexdigest()))
        for place, row in enumerate(rows):
            following = rows[(place + 1) % len(rows)]
            shuffled[run, row["question"]] = row, following if len(rows) > 1 else None
    answers = defaultdict(list)
    of_run = {}
    for each in history:
        if (each.run, each.question) not in shuffled:
            continue
        of_run[each.run] = {"study": each.study, "arm": each.arm, "seed": each.seed}
        replay, _ = shuffled[each.run, each.question]
        for row in [row for visit in each.visits for row in visit.fresh]:
            if row["correct"] and marked(row, marker) and row["trajectory"] != replay["source"]:
                answers[each.run, row["step"] > replay["step"]].append(row)
    cells = defaultdict(list)
    for (run, after), rows in answers.items():
        for row in sorted(rows, key=chosen_first)[:most]:
            cells[run, row["question"], after].append(row)
    expected = []
    for (run, question, after), rows in cells.items():
        overlaps, by_chance, gaps = [], [], []
        for row in rows:
            replay, other = shuffled[row["run"], row["question"]]
            overlaps.append(jaccard(row["response"], replay["response"]))
            if other:
                by_chance.append(jaccard(row["response"], other["response"]))
                gaps.append(overlaps[-1] - by_chance[-1])
        expected.append(
            {
                **of_run[run],
                "run": run,
                "question": question,
                "after": after,
                "pairs": len(overlaps),
                "overlap": mean(overlaps),
                "shuffled_overlap": mean_or_none(by_chance),
                "difference": mean_or_none(gaps),
            }
        )
    return expected


@pytest.mark.parametrize(("marker", "most"), [("flawed", 100), ("flawed", 5), ("shortcut", 100)])
def test_marker_inheritance(
    golden: duckdb.DuckDBPyConnection, history: list[History], marker: str, most: int
) -> None:
    frame = answer(golden, "marker_inheritance", marker=marker, most=most)
    expected = inheritance(history, marker, most)
    assert_same(frame, expected, "study", "arm", "seed", "run", "question", "after")
    assert any(row["difference"] for row in expected if not row["after"])
    if marker == "flawed":  # no new shortcut follows the replay of one in the golden lake
        assert any(row["difference"] for row in expected if row["after"])
    kept = frame.group_by("run", "after").agg(pl.col("pairs").sum())["pairs"]
    assert most > 5 or kept.max() == 5  # some were left out
    assert answer(golden, "marker_inheritance", marker="code").is_empty()  # none replayed


# replay_value


def replay_value(history: list[History], horizon: int = 3, window: int = 20) -> Rows:
    changes: dict[tuple[Any, ...], dict[bool, list[tuple[Any, float]]]] = defaultdict(
        lambda: {True: [], False: []}
    )
    for each in history:
        for place, visit in enumerate(each.visits):
            bucket = each.bucket(place)
            later = [next.share for next in each.visits[place + 1 : place + 1 + horizon]]
            change = difference(mean_or_none(later), visit.share)
            if bucket is None or change is None:
                continue
            match = each.run, (visit.step - 1) // window
            changes[each.study, each.arm, bucket][bool(visit.replays)].append((match, change))
    expected = []
    for (study, arm, bucket), sides in changes.items():
        by_match = defaultdict(list)
        for match, change in sides[False]:
            by_match[match].append(change)
        gaps = [
            change - mean(by_match[match]) for match, change in sides[True] if match in by_match
        ]
        expected.append(
            {
                "study": study,
                "arm": arm,
                "bucket": bucket,
                "replays": len(sides[True]),
                "change_replayed": mean_or_none(change for _, change in sides[True]),
                "plain": len(sides[False]),
                "change_plain": mean_or_none(change for _, change in sides[False]),
                "matched": len(gaps),
                "difference": mean_or_none(gaps),
            }
        )
    return expected


@pytest.mark.parametrize(("horizon", "window"), [(3, 20), (1, 8)])
def test_replay_value(
    golden: duckdb.DuckDBPyConnection, history: list[History], horizon: int, window: int
) -> None:
    frame = answer(golden, "replay_value", horizon=horizon, window=window)
    expected = replay_value(history, horizon, window)
    assert_same(frame, expected, "study", "arm", "bucket")
    assert any(row["difference"] for row in expected)
    assert any(0 < row["matched"] < row["replays"] for row in expected)


# By hand: what the golden lake has no case of


@pytest.mark.parametrize("marker", ["code", "repetition"])
def test_a_marked_trajectory_that_was_replayed_by_hand(marker: str) -> None:
    """Of two fresh right ones at step 1 one is marked; replayed at 2 and 4; fresh: 2 .. 5."""
    mark = {marker: True}
    rows = [
        made(1, 0, **mark, response="print(12345678)"),
        made(1, 1),
        replay_of("r:1:0:0", 2, **mark, response="print(12345678)"),
        made(2, 1),
        made(3, 0, **mark, response="print(1234567)"),  # shares print(1234567
        made(3, 1, correct=False, **mark),
        replay_of("r:1:0:0", 4, **mark, response="print(12345678)"),
        made(4, 1, **mark, response="print(0)"),
        made(5, 0),
    ]
    with made_catalog(runs=[RUN], trajectories=rows) as connection:
        doses = answer(connection, "snowball_dose_response", marker=marker)
        events = answer(connection, "snowball_event_study", marker=marker)
        copies = answer(connection, "marker_inheritance", marker=marker)
        flawed = answer(connection, "snowball_dose_response")
        assert answer(connection, "snowball_event_study").is_empty()  # not known whether flawed
    assert doses["dose"].to_list() == [0, 1, 2]
    assert doses["marked_share"].to_list() == pytest.approx([1 / 3, 1.0, 0.0])
    assert doses["change"].to_list() == [None, 1, -1]  # 3 against 2, 5 against 4
    assert flawed.select("dose", "visits", "right_fresh", "marked_share").rows() == [
        (0, 5, 0, None)
    ]
    # At visit -1 the source itself is left out, so the other right answer alone counts.
    assert events["relative"].to_list() == [-1, 0, 1, 2, 3]
    assert events["treated_share"].to_list() == [0.0, 0.0, 1.0, 1.0, 0.0]
    assert events["treated_right"].to_list() == [1] * 5
    assert events["effect"].null_count() == 5  # no control
    # 15 characters have 8 pieces, 14 have 7 (6 of them shared); "print(0)" is one more piece.
    (row,) = copies.to_dicts()
    assert row["pairs"] == 2 and row["after"]
    assert row["overlap"] == pytest.approx((6 / 9 + 0) / 2)
    assert row["shuffled_overlap"] is None and row["difference"] is None


def test_a_source_is_shuffled_with_that_of_the_next_level() -> None:
    """Of the three replays the answer is like that of level 2, and its own is that of level 1."""
    texts = {"one": "a first answer", "two": "another answer", "three": "12345678"}
    rows = [
        replay_of("r:0:0:0", 2, group=level, question=question, level=level, code=True)
        | {"trajectory": f"r:2:{level}:0", "response": response}
        for level, (question, response) in enumerate(texts.items(), start=1)
    ]
    new = made(3, question="one", level=1, code=True, response="another answer")
    last = made(3, 1, group=3, question="three", level=3, code=True, response="a first answer")
    with made_catalog(runs=[RUN], trajectories=[*rows, new, last]) as connection:
        found = answer(connection, "marker_inheritance", marker="code")
    assert found.select("question", "pairs").rows() == [("one", 1), ("three", 1)]
    assert found["shuffled_overlap"].to_list() == [1.0, 1.0]  # the last level has the first one's
    own = [jaccard("another answer", "a first answer"), 0]
    assert found["overlap"].to_list() == pytest.approx(own)
