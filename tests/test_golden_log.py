"""Queries on what training did: each against a plain loop over the rows of the golden lake.

Where the golden lake has no such case, rows made by hand stand for it.
"""

import re
from collections import Counter, defaultdict
from itertools import pairwise
from math import ceil, floor
from statistics import StatisticsError, correlation, mean, pstdev, stdev
from typing import Any

import duckdb
import pytest
from golden_lake import Row, rows
from golden_scope import SCOPES, Scope, by, first_step, share
from replay_loops import assert_same, made_catalog

from analysis.queries import answer

ARM = ("study", "arm")
RUN = {"study": "s", "arm": "a", "seed": 0, "run": "r"}

in_every_scope = pytest.mark.parametrize("scope", SCOPES, ids=str)


# bucket_transitions


@in_every_scope
@pytest.mark.parametrize("asked", [{}, {"window": 3}])
def test_bucket_transitions(
    golden: duckdb.DuckDBPyConnection, scope: Scope, asked: dict[str, int]
) -> None:
    frame = answer(golden, "bucket_transitions", **asked, **scope.asked)
    expected = transitions(list(scope.rows("trajectories")), **asked)
    states = {(row["before"], row["after"]) for row in expected}
    assert any(before == 0 for before, _ in states)  # failed
    assert any(after == 8 for _, after in states)  # solved
    assert any(0 < before < after < 8 for before, after in states)
    assert_same(frame, expected, *ARM, "group_size", "first_step", "before", "after")


def transitions(trajectories: list[Row], window: int = 10) -> list[Row]:
    largest = {
        run: max(row["group_size"] for row in found)
        for (run,), found in by(trajectories, "run").items()
    }
    visits = by((row for row in trajectories if row["slot"] == 0), *ARM, "run", "question")
    gaps = defaultdict(list)
    for (study, arm, run, _), found in visits.items():
        found.sort(key=lambda row: (row["step"], row["group"]))
        for earlier, later in pairwise(found):
            if not (earlier["group_size"] and later["group_size"]):
                continue
            before, after = (
                largest[run]
                if row["group_successes"] == row["group_size"]
                else row["group_successes"]
                for row in (earlier, later)
            )
            start = first_step(later["step"], window)
            key = (study, arm, largest[run], start, before, after)
            gaps[key].append(later["step"] - earlier["step"])
    leaving: Counter[tuple[Any, ...]] = Counter()
    for key, found_gaps in gaps.items():
        leaving[key[:-1]] += len(found_gaps)
    names = (*ARM, "group_size", "first_step", "before", "after")
    return [
        dict(zip(names, key, strict=True))
        | {
            "transitions": len(found_gaps),
            "share": len(found_gaps) / leaving[key[:-1]],
            "gap": mean(found_gaps),
        }
        for key, found_gaps in gaps.items()
    ]


def test_a_smaller_group_is_solved_all_the_same_and_an_ungraded_one_says_nothing() -> None:
    # step, question, k, K
    cases = [(1, "q", 0, 8), (2, "q", 7, 7), (3, "q", 8, 8), (4, "q", 0, 0), (5, "q", 7, 8)]
    cases += [(5, "other", 1, 8), (9, "other", 7, 8)]
    trajectories = [
        {"run": "r", "step": step, "group": int(question == "q"), "slot": 0, "question": question}
        | {"group_successes": k, "group_size": size, "replayed": False}
        for step, question, k, size in cases
    ]
    with made_catalog(runs=[RUN], trajectories=trajectories) as made:
        frame = answer(made, "bucket_transitions")
    moves = frame.select("group_size", "before", "after", "transitions", "share", "gap").rows()
    assert moves == [(8, 0, 8, 1, 1.0, 1.0), (8, 1, 7, 1, 1.0, 4.0), (8, 8, 8, 1, 1.0, 1.0)]
    assert_same(frame, transitions([row | RUN for row in trajectories]), "before", "after")


# high_entropy_tokens


@in_every_scope
@pytest.mark.parametrize("asked", [{}, {"replayed": True, "top": 3}])
def test_high_entropy_tokens(
    golden: duckdb.DuckDBPyConnection, scope: Scope, asked: dict[str, Any]
) -> None:
    frame = answer(golden, "high_entropy_tokens", **asked, **scope.asked)
    expected = high_tokens(scope, **asked)
    assert {row["correct"] for row in expected} >= ({True} if asked else {True, False})
    assert any(row["carried_share"] > 1.2 * row["occurrence_share"] for row in expected)
    keys = (*ARM, "correct", "tokenizer", "token_id")
    assert_same(frame.sort(keys, nulls_last=True), expected, *keys)
    places = [
        (row["study"], row["arm"], row["correct"], -row["high"], row["token_id"])
        for row in frame.to_dicts()
    ]
    assert places == sorted(places)


def high_tokens(scope: Scope, replayed: bool = False, top: int = 20) -> list[Row]:
    texts = {(row["tokenizer"], row["token_id"]): row["text"] for row in rows("vocabulary")}
    logged = logged_entropies(scope)
    bounds = {}
    for (run,), found in by(logged, "run").items():
        entropies = sorted(row["entropy"] for row in found)
        place = 0.8 * (len(entropies) - 1)
        low, high = entropies[floor(place)], entropies[ceil(place)]
        bounds[run] = low + (place - floor(place)) * (high - low)
    expected = []
    asked = [row for row in logged if row["replayed"] == replayed]
    for (study, arm, correct, tokenizer), found in by(asked, *ARM, "correct", "tokenizer").items():
        high = Counter(row["token_id"] for row in found if row["entropy"] >= bounds[row["run"]])
        for token_id, count in sorted(high.items(), key=lambda item: (-item[1], item[0]))[:top]:
            entropies = [row["entropy"] for row in found if row["token_id"] == token_id]
            expected.append(
                {
                    "study": study,
                    "arm": arm,
                    "correct": correct,
                    "tokenizer": tokenizer,
                    "token_id": token_id,
                    "text": texts[tokenizer, token_id],
                    "tokens": len(entropies),
                    "high": count,
                    "high_share": count / len(entropies),
                    "carried_share": count / high.total(),
                    "occurrence_share": len(entropies) / len(found),
                    "mean_entropy": mean(entropies),
                }
            )
    return expected


def logged_entropies(scope: Scope) -> list[Row]:
    """A row a token whose entropy was logged."""
    trajectories = {row["trajectory"]: row for row in scope.rows("trajectories")}
    return [
        {name: trajectory[name] for name in (*ARM, "run", "replayed", "correct")}
        | {
            "tokenizer": scope.runs[row["run"]]["tokenizer"],
            "token_id": token_id,
            "entropy": entropy,
            "tenth": 10 * place // len(row["entropies"]),
        }
        for row in scope.rows("tokens")
        if row["entropies"] is not None
        for trajectory in [trajectories[row["trajectory"]]]
        for place, (token_id, entropy) in enumerate(
            zip(row["token_ids"], row["entropies"], strict=True)
        )
    ]


# entropy_position_profile


@in_every_scope
def test_entropy_position_profile(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "entropy_position_profile", **scope.asked)
    keys = (*ARM, "replayed", "correct", "tenth")
    expected = [
        dict(zip(keys, key, strict=True))
        | {
            "runs": len({row["run"] for row in found}),
            "tokens": len(found),
            "mean_entropy": mean(row["entropy"] for row in found),
            "sd_entropy": pstdev(row["entropy"] for row in found),
        }
        for key, found in by(logged_entropies(scope), *keys).items()
    ]
    kinds = {(row["replayed"], row["correct"]) for row in expected}
    assert kinds >= {(True, True), (False, True), (False, False)}
    assert {row["tenth"] for row in expected} == set(range(10))
    assert_same(frame, expected, *keys)


# length_truncation


@in_every_scope
@pytest.mark.parametrize("window", [None, 4])
def test_length_truncation(
    golden: duckdb.DuckDBPyConnection, scope: Scope, window: int | None
) -> None:
    frame = answer(golden, "length_truncation", window=window, **scope.asked)
    keys = (*ARM, "first_step", "correct", "successes", "size")
    fresh = [
        row
        | {
            "first_step": window and first_step(row["step"], window),
            "successes": row["group_successes"],
            "size": row["group_size"],
        }
        for row in scope.rows("trajectories")
        if not row["replayed"]
    ]
    expected = [
        dict(zip(keys, key, strict=True)) | lengths(found)
        for key, found in by(fresh, *keys).items()
    ]
    assert any(abs(row["length_entropy_correlation"] or 0) > 0.2 for row in expected)
    assert_same(frame, expected, *keys)


def lengths(found: list[Row]) -> Row:
    measured = [row["length"] for row in found if row["length"] is not None]
    pairs = [(row["length"], row["mean_entropy"]) for row in found]
    try:
        together = correlation(*zip(*(pair for pair in pairs if None not in pair), strict=True))
    except (StatisticsError, TypeError):  # one of them does not vary, or there are none
        together = None
    cut = [None if row["finish"] is None else row["finish"] == "length" for row in found]
    return {
        "trajectories": len(found),
        "length": share(measured),
        "sd_length": stdev(measured) if len(measured) > 1 else None,
        "truncated_share": share(cut),
        "mean_entropy": share(row["mean_entropy"] for row in found),
        "length_entropy_correlation": together,
    }


def test_longer_wrong_answers_are_cut_off_and_surer() -> None:
    # correct, length, finish, mean_entropy
    cases = [
        (True, 10, "stop", 0.1),
        (True, 20, "stop", 0.1),  # entropies that do not vary
        (False, 30, "stop", 0.9),
        (False, 40, "length", 0.5),
        (False, 60, "length", 0.2),
        (None, 60, "length", 0.2),  # a single one
    ]
    names = ("correct", "length", "finish", "mean_entropy")
    trajectories = [
        {"run": "r", "step": 1, "group": 0, "slot": slot, "question": "q", "replayed": False}
        | dict(zip(names, case, strict=True))
        for slot, case in enumerate(cases)
    ]
    with made_catalog(runs=[RUN], trajectories=trajectories) as made:
        frame = answer(made, "length_truncation")
    for found in frame.to_dicts():
        same = [row for row in trajectories if row["correct"] is found["correct"]]
        assert {name: found[name] for name in lengths(same)} == pytest.approx(lengths(same))
    assert frame["truncated_share"].to_list() == [2 / 3, 0, 1]
    wrong, right, ungraded = frame["length_entropy_correlation"]
    assert -1 < wrong < -0.9 and right is ungraded is None


# buffer_concentration


@in_every_scope
def test_buffer_concentration(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "buffer_concentration", **scope.asked)
    expected = []
    trajectories = list(scope.rows("trajectories"))
    for run, row in scope.runs.items():
        mine = [each for each in trajectories if each["run"] == run]
        drawn = {
            (each["step"], each["group"], each["question"]) for each in mine if each["experiential"]
        }
        uses = {
            "draw": Counter(question for _, _, question in drawn),
            "replay": Counter(each["question"] for each in mine if each["replayed"]),
        }
        stored = {
            event["question"]
            for event in scope.rows("experience")
            if event["run"] == run and event["event"] == "stored"
        }
        for counted, counts in uses.items():
            if counts:
                key = {name: row[name] for name in (*ARM, "seed", "run")}
                expected.append(key | {"counted": counted} | concentration(counts, len(stored)))
    assert any(row["gini"] > 0.1 and row["distinct_questions"] > 5 for row in expected)
    assert_same(frame, expected, *ARM, "seed", "run", "counted")


def concentration(counts: Counter[str], stored: int) -> Row:
    available = max(stored, len(counts))
    total = counts.total()
    uses = sorted([*counts.values(), *[0] * (available - len(counts))], reverse=True)
    apart = sum(abs(one - other) for one in uses for other in uses)
    return {
        "total": total,
        "available": available,
        "distinct_questions": len(counts),
        "gini": apart / (2 * available * total),
        "top_share": sum(uses[: ceil(available / 100)]) / total,
        "effective_questions": 1 / sum((use / total) ** 2 for use in uses),
    }


@pytest.mark.parametrize(("stored", "even"), [(250, False), (4, False), (4, True), (0, True)])
def test_concentration_over_hundreds_of_questions_over_few_and_over_unknown_ones(
    stored: int, even: bool
) -> None:
    counts = Counter({f"q{place}": 1 if even else place for place in range(1, 5)})
    trajectories = [
        {"run": "r", "step": step, "group": place, "slot": slot, "question": question}
        | {"replayed": place != 0, "experiential": True}
        for place, question in enumerate(counts)
        for step in range(counts[question])
        for slot in range(1 + (question == "q4"))  # two at a time are replayed of the last
    ]
    events = [
        {"run": "r", "step": 0, "question": f"q{place + 1}", "event": event}
        for place in range(stored)
        for event in ("entered", "stored", "stored")
    ]
    with made_catalog(runs=[RUN], trajectories=trajectories, experience=events) as made:
        frame = answer(made, "buffer_concentration")
    draws = RUN | {"counted": "draw"} | concentration(counts, stored)
    del counts["q1"]  # drawn, not replayed
    counts["q4"] *= 2
    replays = RUN | {"counted": "replay"} | concentration(counts, stored)
    assert_same(frame, [draws, replays], "counted")
    if stored == 4 and even:
        assert frame.row(0)[-3:] == (0, 1 / 4, 4)
    if stored == 250:
        assert frame["top_share"][0] == (4 + 3 + 2) / 10


# duplicate_trajectories


@in_every_scope
@pytest.mark.parametrize("asked", [{}, {"window": 5}])
def test_duplicate_trajectories(
    golden: duckdb.DuckDBPyConnection, scope: Scope, asked: dict[str, int]
) -> None:
    frame = answer(golden, "duplicate_trajectories", **asked, **scope.asked)
    expected = duplicates(list(scope.rows("trajectories")), **asked)
    assert any(0 < row["duplicate_share"] < 1 and row["uniform_share"] > 0 for row in expected)
    assert_same(frame, expected, *ARM, "first_step")


def duplicates(trajectories: list[Row], window: int = 10) -> list[Row]:
    windows = defaultdict(list)
    fresh = (row for row in trajectories if not row["replayed"])
    for (study, arm, _, step, _), found in by(fresh, *ARM, "run", "step", "group").items():
        responses = [row["response"] for row in found]
        if len(responses) > 1 and any(response is not None for response in responses):
            windows[study, arm, first_step(step, window)].append(responses)
    return [
        dict(zip((*ARM, "first_step"), key, strict=True)) | sameness(groups)
        for key, groups in windows.items()
    ]


def sameness(groups: list[list[str]]) -> Row:
    fresh = sum(map(len, groups))
    kinds = [len({re.sub(r"\s", "", each).lower() for each in group}) for group in groups]
    return {
        "groups": len(groups),
        "fresh": fresh,
        "duplicate_share": (fresh - sum(len(set(group)) for group in groups)) / fresh,
        "near_duplicate_share": (fresh - sum(kinds)) / fresh,
        "distinct_responses": mean(kinds),
        "diversity": mean(
            (kind - 1) / (len(group) - 1) for kind, group in zip(kinds, groups, strict=True)
        ),
        "uniform_share": kinds.count(1) / len(groups),
    }


def test_near_duplicates_differ_by_case_and_white_space() -> None:
    groups: list[list[str | None]] = [
        ["A b", "ab", "a\nB", "c"],
        ["x", "x", "X"],
        ["alone"],
        [None, None],
    ]
    trajectories = [
        {"run": "r", "step": 1, "group": group, "slot": slot, "question": f"q{group}"}
        | {"replayed": slot == 3 and group == 0, "response": response}
        for group, responses in enumerate(groups)
        for slot, response in enumerate(responses)
    ]
    with made_catalog(runs=[RUN], trajectories=trajectories) as made:
        frame = answer(made, "duplicate_trajectories")
    assert_same(frame, duplicates([row | RUN for row in trajectories]), "first_step")
    assert frame.row(0)[3:] == pytest.approx((2, 6, 1 / 6, 4 / 6, 1, 0, 1))
