"""The SQL of the analyses against plain Python loops over the rows that were logged."""

from collections import defaultdict
from collections.abc import Callable
from statistics import mean, stdev
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults

from analysis.queries import answer, named_queries

Row = dict[str, Any]
ANALYSES = (
    "arm_accuracy",
    "arm_summary",
    "buffer_dynamics",
    "difficulty_vs_gain",
    "entropy_by_validity",
    "entropy_validity_rows",
    "gain_over_time",
    "snowball",
    "study_runs",
    "validation_accuracy",
)


@pytest.fixture(scope="module")
def ask(connection: duckdb.DuckDBPyConnection) -> Callable[[str], list[Row]]:
    return lambda name: answer(connection, name, study=STUDY).rows(named=True)


def runs(demo: DemoResults) -> dict[str, Row]:
    return {row["run"]: row for row in demo.rows["runs"]}


def groups(rows: list[Row], *keys: str) -> dict[tuple, list[Row]]:
    """Rows by key; a key that is not a column of theirs is looked up in the run's row."""
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row)
    return found


def joined(demo: DemoResults, table: str) -> list[Row]:
    known = runs(demo)
    return [
        row | {name: known[row["run"]][name] for name in ("arm", "seed")}
        for row in demo.rows[table]
    ]


def share(rows: list[Row], test: Callable[[Row], Any]) -> float | None:
    return mean(bool(test(row)) for row in rows) if rows else None


def right_fresh(demo: DemoResults) -> list[Row]:
    return [
        row
        for row in joined(demo, "trajectories")
        if row["correct"] and not row["replayed"] and row["chain_valid"] is not None
    ]


def check(got: list[Row], expected: list[Row], keys: tuple[str, ...]) -> None:
    """Rows of the study with the same keys, every expected column equal (numbers to 1e-9)."""

    def order(row: Row) -> tuple:
        return tuple((row[key] is not None, row[key] or 0) for key in keys)

    got, expected = sorted(got, key=order), sorted(expected, key=order)
    assert expected
    assert {row["study"] for row in got} == {STUDY}
    assert [order(row) for row in got] == [order(row) for row in expected]
    for ours, theirs in zip(got, expected, strict=True):
        for name, value in theirs.items():
            assert ours[name] == (value if value is None else pytest.approx(value)), (name, theirs)


@pytest.mark.parametrize("name", ANALYSES)
def test_columns_are_those_of_the_header(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    frame = answer(connection, name, study=STUDY)
    assert frame.columns == list(named_queries()[name].columns)
    assert not any(isinstance(kind, pl.Decimal) for kind in frame.schema.values())
    assert answer(connection, name, study="no such study").is_empty()


def test_arm_accuracy(demo: DemoResults, ask: Callable) -> None:
    rows = [row for row in joined(demo, "evaluations") if row["benchmark"] != "validation"]
    expected = [
        {
            "run": run,
            "benchmark": benchmark,
            "question": question,
            "arm": samples[0]["arm"],
            "seed": samples[0]["seed"],
            "samples": sum(row["correct"] is not None for row in samples),
            "correct": sum(row["correct"] is True for row in samples),
            "extracted": sum(
                row["extracted"] is not None and row["correct"] is not None for row in samples
            ),
            "checked": sum(bool(row["correct"]) for row in samples),
            "flawed": sum(bool(row["correct"]) and not row["chain_valid"] for row in samples),
        }
        for (run, benchmark, question), samples in groups(
            rows, "run", "benchmark", "question"
        ).items()
    ]
    got = ask("arm_accuracy")
    check(got, expected, ("run", "benchmark", "question"))
    assert {row["step"] for row in got if row["arm"] == "base"} == {0}
    assert {row["step"] for row in got if row["arm"] != "base"} == {6}


def test_arm_summary(demo: DemoResults, ask: Callable) -> None:
    steps, answers = joined(demo, "steps"), groups(right_fresh(demo), "arm")
    expected = []
    for (arm,), rows in groups(steps, "arm").items():
        right = answers[arm,]
        last = [row for row in rows if row["step"] == 6]
        expected.append(
            {
                "arm": arm,
                "runs": 2,
                "steps": 6,
                "signal_share": sum(row["signal_groups"] for row in rows) / (4 * len(rows)),
                "experiential_share": sum(row["experiential_groups"] for row in rows)
                / (4 * len(rows)),
                "right_fresh": len(right),
                "flawed_share": share(right, lambda row: not row["chain_valid"]),
                "seconds": 12.5,
                "sampled_tokens": mean(
                    max(row["total_sampled_tokens"] for row in rows if row["run"] == run)
                    for run in {row["run"] for row in last}
                ),
                "retired_questions": 0,
            }
        )
    check(ask("arm_summary"), expected, ("arm",))


def test_difficulty_vs_gain(demo: DemoResults, ask: Callable) -> None:
    visits = defaultdict(list)
    for (run, step, group), rows in sorted(
        groups(joined(demo, "trajectories"), "run", "step", "group").items()
    ):
        fresh = [row["correct"] for row in rows if not row["replayed"]]
        graded = [correct for correct in fresh if correct is not None]
        first = rows[0]
        visits[run, first["question"]].append(
            first | {"share": mean(graded) if graded else None, "step": step, "group": group}
        )
    found = defaultdict(list)
    for history in visits.values():
        for place, visit in enumerate(history):
            before = history[place - 1] if place else {"group_successes": 0, "group_size": 0}
            k = before["group_successes"]
            fresh = k if 0 < k < before["group_size"] else None
            bucket = visit["bucket_drawn"] if visit["experiential"] else fresh
            if bucket is None:
                continue
            later = history[place + 1]["share"] if place + 1 < len(history) else None
            change = None if later is None else later - visit["share"]
            found[visit["arm"], visit["experiential"], bucket].append((visit, change))
    expected = [
        {
            "arm": arm,
            "experiential": experiential,
            "bucket": bucket,
            "groups": len(items),
            "success_share": mean(visit["share"] for visit, _ in items),
            "signal_share": mean(
                0 < visit["group_successes"] < visit["group_size"] for visit, _ in items
            ),
            "next_visits": sum(change is not None for _, change in items),
            "change_next": mean(changes) if changes else None,
        }
        for (arm, experiential, bucket), items in found.items()
        for changes in [[change for _, change in items if change is not None]]
    ]
    assert any(row["experiential"] for row in expected)
    check(ask("difficulty_vs_gain"), expected, ("arm", "experiential", "bucket"))


def test_entropy_by_validity(demo: DemoResults, ask: Callable) -> None:
    found = groups(right_fresh(demo), "arm", "group_successes", "group_size", "chain_valid")
    expected = [
        {
            "arm": arm,
            "bucket": bucket,
            "group_size": size,
            "chain_valid": valid,
            "trajectories": len(rows),
            "mean_entropy": mean(row["mean_entropy"] for row in rows),
            "sd_entropy": stdev(row["mean_entropy"] for row in rows) if len(rows) > 1 else None,
            "mean_nll": mean(row["nll"] for row in rows),
            "mean_length": mean(row["length"] for row in rows),
        }
        for (arm, bucket, size, valid), rows in found.items()
    ]
    check(ask("entropy_by_validity"), expected, ("arm", "bucket", "group_size", "chain_valid"))


def test_entropy_validity_rows(demo: DemoResults, ask: Callable) -> None:
    expected = [row for row in right_fresh(demo) if row["bucket"] is not None]
    got = ask("entropy_validity_rows")
    assert {row["one_in"] for row in got} == {1}
    assert sorted(row["mean_entropy"] for row in got) == sorted(
        row["mean_entropy"] for row in expected
    )
    assert sum(row["chain_valid"] for row in got) == sum(row["chain_valid"] for row in expected)
    assert {row["window_start"] for row in got} == {1}


def test_entropy_validity_rows_are_sampled_when_many(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """With a bound of 20 rows: fewer rows, the same every time."""
    first, second = (
        answer(connection, "entropy_validity_rows", study=STUDY, most=20) for _ in range(2)
    )
    everything = answer(connection, "entropy_validity_rows", study=STUDY)
    assert first.equals(second)
    assert 0 < first.height < everything.height / 2
    assert (first["one_in"] > 1).all()


def test_snowball(demo: DemoResults, ask: Callable) -> None:
    expected = []
    checked = [row for row in joined(demo, "trajectories") if row["chain_valid"] is not None]
    for (arm, seed), rows in groups(checked, "arm", "seed").items():
        right = [row for row in rows if row["correct"] and not row["replayed"]]
        replayed = [row for row in rows if row["replayed"]]
        expected.append(
            {
                "arm": arm,
                "seed": seed,
                "window_start": 1,
                "right_fresh": len(right),
                "flawed_share": share(right, lambda row: not row["chain_valid"]),
                "shortcut_share": share(right, lambda row: row["shortcut"]),
                "replayed": len(replayed),
                "replayed_flawed_share": share(replayed, lambda row: not row["chain_valid"]),
            }
        )
    check(ask("snowball"), expected, ("arm", "seed"))


@pytest.mark.parametrize("name", ["snowball"])
def test_windows(demo: DemoResults, connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """With windows of 2 steps: 1-2, 3-4, 5-6, and every answer in one of them."""
    counted = answer(connection, name, study=STUDY, window=2)
    by_window = dict(counted.group_by("window_start").agg(pl.col("right_fresh").sum()).rows())
    expected = groups(right_fresh(demo), "step")
    assert by_window == {
        start: len(expected[start,]) + len(expected[start + 1,]) for start in (1, 3, 5)
    }


def test_buffer_dynamics(demo: DemoResults, ask: Callable) -> None:
    expected = [
        {
            "arm": row["arm"],
            "seed": row["seed"],
            "step": row["step"],
            "buffer_questions": row["buffer_questions"],
            "buffer_trajectories": row["buffer_trajectories"],
            "retired_questions": 0,
            "train_questions": 12,
            "signal_share": row["signal_groups"] / 4,
            "entropy": row["entropy"],
        }
        for row in joined(demo, "steps")
    ]
    check(ask("buffer_dynamics"), expected, ("arm", "seed", "step"))


def test_gain_over_time(demo: DemoResults, ask: Callable) -> None:
    rows = [row for row in joined(demo, "evaluations") if row["benchmark"] == "validation"]
    tokens = {(row["run"], row["step"]): row["total_sampled_tokens"] for row in demo.rows["steps"]}
    accuracy = {}
    for (arm, seed, run, step), samples in groups(rows, "arm", "seed", "run", "step").items():
        graded = [row for row in samples if row["correct"] is not None]
        by_question = [
            mean(row["correct"] for row in asked) for asked in groups(graded, "question").values()
        ]
        accuracy[arm, seed, step] = (mean(by_question), tokens.get((run, step), 0))
    expected = [
        {
            "arm": arm,
            "seed": seed,
            "step": step,
            "accuracy": value,
            "sampled_tokens": sampled,
            "gain": value - accuracy["on_policy", seed, step][0],
        }
        for (arm, seed, step), (value, sampled) in accuracy.items()
    ]
    check(ask("gain_over_time"), expected, ("arm", "seed", "step"))


def test_validation_accuracy(demo: DemoResults, ask: Callable) -> None:
    rows = [row for row in joined(demo, "evaluations") if row["benchmark"] == "validation"]
    expected = [
        {
            "arm": arm,
            "seed": seed,
            "step": step,
            "question": question,
            "samples": sum(row["correct"] is not None for row in samples),
            "correct": sum(row["correct"] is True for row in samples),
        }
        for (arm, seed, step, question), samples in groups(
            rows, "arm", "seed", "step", "question"
        ).items()
    ]
    check(ask("validation_accuracy"), expected, ("arm", "seed", "step", "question"))


def test_study_runs(demo: DemoResults, ask: Callable) -> None:
    expected = [
        {"run": row["run"], "arm": row["arm"], "world": "hard", "seconds": row["seconds"]}
        for row in demo.rows["runs"]
    ]
    got = ask("study_runs")
    check(got, expected, ("run",))
    trained = [row for row in got if row["arm"] != "base"]
    assert {(row["pretrained"], row["max_level"], row["max_ood_level"]) for row in trained} == {
        (5, 8, 12)
    }
