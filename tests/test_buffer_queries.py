"""The queries of the experience buffer against plain loops over the golden lake."""

import json
from collections import Counter, defaultdict
from statistics import quantiles
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import Row
from golden_scope import SCOPES, Scope, by, first_step, share
from replay_loops import RUN, assert_same, made, made_catalog, replay_of

from analysis.concentration import over_time
from analysis.queries import answer

WINDOW = 5
OF_RUN = ("study", "arm", "seed", "run")
scopes = pytest.mark.parametrize("scope", SCOPES, ids=str)


def in_windows(rows: Any, window: int = WINDOW) -> list[Row]:
    return [row | {"first_step": first_step(row["step"], window)} for row in rows]


def quantile(values: list[float], share: float) -> float | None:
    """By linear interpolation between the values in order."""
    if len(values) < 2:
        return values[0] if values else None
    return quantiles(values, n=20, method="inclusive")[round(20 * share) - 1]


def replays(scope: Scope) -> list[Row]:
    return [
        row | {"age": row["step"] - row["birth_step"]}
        for row in scope.rows("trajectories")
        if row["replayed"] and row["source"].startswith(row["run"] + ":")
    ]


@scopes
def test_buffer_events(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = (*OF_RUN, "first_step", "event")
    expected = [
        dict(zip(keys, key, strict=True))
        | {"events": len(rows), "questions": len({row["question"] for row in rows})}
        for key, rows in by(in_windows(scope.rows("experience")), *keys).items()
    ]
    found = answer(golden, "buffer_events", **scope.asked, window=WINDOW)
    assert_same(found, expected, *keys)


@scopes
def test_buffer_ages(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = (*OF_RUN, "first_step")
    expected = [
        dict(zip(keys, key, strict=True))
        | {"replayed": len(rows)}
        | {
            f"age_p{100 * part:02.0f}": quantile([row["age"] for row in rows], part)
            for part in (0.05, 0.5, 0.95)
        }
        for key, rows in by(in_windows(replays(scope)), *keys).items()
    ]
    assert_same(answer(golden, "buffer_ages", **scope.asked, window=WINDOW), expected, *keys)


@scopes
def test_buffer_age_weights(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = ("study", "arm", "least_age")
    aged = [row | {"least_age": row["age"] // 4 * 4} for row in replays(scope)]
    expected = []
    for key, rows in by(aged, *keys).items():
        ratios = [row["ratio_mean"] for row in rows if row["ratio_mean"] is not None]
        expected.append(
            dict(zip(keys, key, strict=True))
            | {"replayed": len(rows), "with_gradient": len(ratios)}
            | {f"ratio_p{100 * p:02.0f}": quantile(ratios, p) for p in (0.05, 0.5, 0.95)}
            | {name: share(row[name] for row in rows) for name in ("ratio_ess", "weight_mean")}
        )
    assert any(row["with_gradient"] < row["replayed"] for row in expected)
    assert_same(answer(golden, "buffer_age_weights", **scope.asked, width=4), expected, *keys)


@scopes
def test_buffer_uses(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    keys = (*OF_RUN, "first_step", "question")
    uses: dict[tuple[Any, ...], Row] = defaultdict(
        lambda: {"first_stored": False, "draws": 0, "replays": 0}
    )
    stored = [row for row in scope.rows("experience") if row["event"] == "stored"]
    for (*run, question), rows in by(stored, *OF_RUN, "question").items():
        first = first_step(min(row["step"] for row in rows), WINDOW)
        uses[*run, first, question]["first_stored"] = True
    for key, rows in by(in_windows(scope.rows("trajectories")), *keys).items():
        drawn = {(row["step"], row["group"]) for row in rows if row["experiential"]}
        again = sum(row["replayed"] for row in rows)
        if drawn or again:
            uses[key]["draws"] += len(drawn)
            uses[key]["replays"] += again
    expected = [dict(zip(keys, key, strict=True)) | counts for key, counts in uses.items()]
    assert_same(answer(golden, "buffer_uses", **scope.asked, window=WINDOW), expected, *keys)


@scopes
def test_buffer_reuse(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    times = Counter(
        {
            key: sum(row["event"] == "replayed" for row in rows)
            for key, rows in by(scope.rows("experience"), *OF_RUN, "trajectory").items()
            if key[-1] is not None
        }
    )
    counts = Counter((*key[:-1], uses) for key, uses in times.items())
    keys = (*OF_RUN, "times")
    expected = [
        dict(zip(keys, key, strict=True)) | {"trajectories": count} for key, count in counts.items()
    ]
    assert {row["times"] for row in expected} > {0, 1}
    assert_same(answer(golden, "buffer_reuse", **scope.asked), expected, *keys)


@scopes
def test_buffer_draws(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    before = {(row["run"], row["step"] + 1): row["bucket_sizes"] for row in scope.rows("steps")}
    keys = (*OF_RUN, "step")
    expected = []
    for key, rows in by(scope.rows("trajectories"), *keys).items():
        groups = {row["group"]: row["bucket_drawn"] for row in rows if row["experiential"]}
        drawn = Counter(bucket for bucket in groups.values() if bucket is not None)
        for bucket, questions in enumerate(before.get(key[-2:]) or [] if drawn else [], 1):
            expected.append(
                dict(zip(keys, key, strict=True))
                | {"bucket": bucket, "questions": questions, "drawn": drawn[bucket]}
            )
    assert all(row["drawn"] <= row["questions"] for row in expected)
    assert_same(answer(golden, "buffer_draws", **scope.asked), expected, *keys, "bucket")


@scopes
def test_buffer_rules(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    expected = []
    for row in scope.runs.values():
        settings = json.loads(row["settings"] or "{}")
        if rule := settings.get("experience"):
            expected.append(
                {name: row[name] for name in OF_RUN}
                | {"replay": rule["replay"], "rule": rule["draw"]}
                | {name: rule[name] for name in ("mu", "sigma", "sigma_unit")}
                | {"group_size": settings["rollout"]["group_size"]}
            )
    assert_same(answer(golden, "buffer_rules", **scope.asked), expected, *OF_RUN)


@scopes
@pytest.mark.parametrize("step", [5, 9, 13, None])
def test_buffer_snapshot(golden: duckdb.DuckDBPyConnection, scope: Scope, step: int | None) -> None:
    """Replayed event by event; and as full as the log of the step says."""
    found = answer(golden, "buffer_snapshot", **scope.asked, step=step)
    expected = []
    for run, row in scope.runs.items():
        events = [
            event
            for event in scope.rows("experience")
            if event["run"] == run and (step is None or event["step"] <= step)
        ]
        drawn = {
            (t["step"], t["group"], t["question"])
            for t in scope.rows("trajectories")
            if t["run"] == run and t["experiential"] and (step is None or t["step"] <= step)
        }
        draws = Counter(question for *_, question in drawn)
        for question, held in inside(events).items():
            named = {name: row[name] for name in OF_RUN} | {"question": question}
            expected.append(
                named
                | {name: held[name] for name in ("bucket", "stored", "entered")}
                | {"draws": draws[question]}
                | {name: held[name] for name in ("replays", "last_replay")}
            )
    assert_same(found, expected, *OF_RUN, "question")
    for logged in scope.rows("steps"):
        if logged["step"] == (step or 16) and logged["run"] != "import-riddles":
            mine = found.filter(pl.col("run") == logged["run"])
            sizes = Counter(mine["bucket"].drop_nulls())
            assert [sizes[k] for k in range(1, 8)] == logged["bucket_sizes"]
            assert mine["stored"].sum() == logged["buffer_trajectories"]


def inside(events: list[Row]) -> dict[str, Row]:
    """The buffer after these events, in their order."""
    held: dict[str, Row] = defaultdict(
        lambda: {"bucket": None, "stored": 0, "entered": None, "replays": 0, "last_replay": None}
    )
    for event in events:
        question, kind = held[event["question"]], event["event"]
        if kind == "replayed":
            question["replays"] += 1
            question["last_replay"] = event["step"]
            continue  # it tells the bucket of the draw
        question["bucket"] = event["bucket_after"]
        if kind in ("entered", "returned"):
            question["entered"] = event["step"]
        elif kind == "stored":
            question["stored"] += 1
        elif kind == "evicted":
            question["stored"] -= 1
        elif kind in ("retired", "left"):
            question["stored"] = 0
    return {
        name: row for name, row in held.items() if row["bucket"] is not None or row["stored"] > 0
    }


def test_what_retires_drops_what_it_stored_and_what_returns_stores_anew() -> None:
    def event(step: int, kind: str, **more: Any) -> Row:
        return {"run": "r", "step": step, "question": "q", "event": kind, **more}

    rows = [
        event(1, "entered", bucket_after=3),
        event(1, "stored", bucket_before=3, bucket_after=3, trajectory="a"),
        event(1, "stored", bucket_before=3, bucket_after=3, trajectory="b"),
        event(2, "evicted", bucket_before=3, bucket_after=3, trajectory="a"),
        event(3, "retired", bucket_before=3),
        event(5, "returned", bucket_after=7),
        event(5, "stored", bucket_before=7, bucket_after=7, trajectory="b"),
    ]
    after: dict[int, list[tuple[Any, ...]]] = {}
    with made_catalog(runs=[RUN], experience=rows) as connection:
        for step in range(1, 6):
            found = answer(connection, "buffer_snapshot", step=step)
            after[step] = found.select("bucket", "stored", "entered").rows()
    assert after == {1: [(3, 2, 1)], 2: [(3, 1, 1)], 3: [], 4: [], 5: [(7, 1, 5)]}


@scopes
def test_buffer_most_replayed(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    again = [row for row in scope.rows("trajectories") if row["replayed"]]
    expected = []
    for (*run, source), rows in by(again, *OF_RUN, "source").items():
        last = max(rows, key=lambda row: (row["step"], row["group"], row["slot"]))
        expected.append(
            dict(zip(OF_RUN, run, strict=True))
            | {"question": last["question"], "source": source, "birth_step": last["birth_step"]}
            | {"replays": len(rows), "first_replay": min(row["step"] for row in rows)}
            | {"last_replay": last["step"], "chain_valid": last["chain_valid"]}
            | {"opened": last["trajectory"]}
        )
    expected.sort(key=lambda row: (*(row[n] for n in OF_RUN), -row["replays"], row["source"]))
    found = answer(golden, "buffer_most_replayed", **scope.asked)
    assert found.to_dicts() == expected
    few = answer(golden, "buffer_most_replayed", **scope.asked, most=2)
    assert few.group_by("run").len()["len"].max() == 2


def test_a_step_after_a_gap_in_the_log_has_no_bucket_sizes_before_it() -> None:
    steps = [{"run": "r", "step": step, "bucket_sizes": [2, 1]} for step in (1, 2, 4)]
    rows = [replay_of("r:1:0:0", step) for step in (2, 4)]
    with made_catalog(runs=[RUN], steps=steps, trajectories=rows) as connection:
        found = answer(connection, "buffer_draws")
    assert found.select("step", "bucket", "questions", "drawn").rows() == [
        (2, 1, 2, 0),
        (2, 2, 1, 1),
    ]


@pytest.mark.parametrize(("counted", "named"), [("draws", "draw"), ("replays", "replay")])
def test_concentration_over_time_ends_where_the_query_of_the_whole_run_is(
    golden: duckdb.DuckDBPyConnection, counted: Any, named: str
) -> None:
    whole = answer(golden, "buffer_concentration").filter(pl.col("counted") == named)
    windows = over_time(answer(golden, "buffer_uses", window=WINDOW), counted)
    last = windows.filter(pl.col("first_step") == pl.col("first_step").max().over("run"))
    ends = dict(zip(last["run"], last.select("gini", "top_1").rows(), strict=True))
    for run, *expected in whole.select("run", "gini", "top_share").iter_rows():
        assert ends.pop(run) == pytest.approx(expected)
    assert not ends
    assert windows.height > last.height > 0


def test_a_question_that_was_never_drawn_counts_as_used_0_times() -> None:
    rows = [made(1), replay_of("r:1:0:0", 2), replay_of("r:1:0:0", 3)]
    events = [
        {"run": "r", "step": 1, "question": question, "event": "stored", "trajectory": question}
        for question in ("q", "other")
    ]
    with made_catalog(runs=[RUN], trajectories=rows, experience=events) as connection:
        uses = answer(connection, "buffer_uses", window=1)
    assert over_time(uses, "draws").select("first_step", "gini", "top_10").rows() == [
        (2, 0.5, 1.0),
        (3, 0.5, 1.0),
    ]
