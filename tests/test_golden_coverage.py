"""`log_coverage` against a plain loop over the golden lake, whole and with rows taken out."""

from typing import Any

import duckdb
import pytest
from golden_lake import Row, rows
from golden_scope import SCOPES, Scope, by
from replay_loops import assert_same, made_catalog

from analysis.queries import answer

ARM = ("study", "arm")
RUN = {"study": "s", "arm": "a", "seed": 0, "run": "r"}


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_log_coverage(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "log_coverage", **scope.asked)
    tables = {name: list(scope.rows(name)) for name in ("steps", "trajectories", "evaluations")}
    expected = [coverage(row, **tables) for row in scope.runs.values()]
    assert {row["steps"] for row in expected} >= {0, 16}
    assert any(0 < (row["float_share"] or 0) < 1 for row in expected)
    names = [name for name in frame.columns if name != "missing"]
    assert_same(frame.select(names), expected, *ARM, "seed", "run")
    missing = dict(frame.select("run", "missing").iter_rows())
    assert {run for run, text in missing.items() if text} == set(scope.runs) & {"import-riddles"}
    if "import-riddles" in scope.runs:
        assert missing["import-riddles"] == (  # a file of answers is no training
            "1 of 1 rows of steps, the first of step 1; token log-probabilities and entropies"
        )


def coverage(run: Row, steps: list[Row], trajectories: list[Row], evaluations: list[Row]) -> Row:
    """What there is of a run that is whole or has lost rows of `trajectories` only."""
    steps, trajectories, evaluations = (
        [row for row in table if row["run"] == run["run"]]
        for table in (steps, trajectories, evaluations)
    )
    groups = by(trajectories, "step", "group").values()
    fresh = [
        (sum(row["replayed"] for row in group), sum(not row["replayed"] for row in group))
        for group in groups
    ]
    most = {replayed: max(n for of, n in fresh if of == replayed) for replayed, _ in fresh}
    last = run["steps"] or 0
    logged = sum(row["token_floats_logged"] or 0 for row in steps)  # unknown to an import
    every = 4 if run["study"] == "golden" and run["arm"] != "base" else None
    return {name: run[name] for name in (*ARM, "seed", "run", "status")} | {
        "steps_expected": last,
        "steps": len(steps),
        "groups_expected": sum(row["groups"] for row in steps),
        "groups": len(groups),
        "trajectories_expected": len(trajectories),
        "trajectories": len(trajectories),
        "small_groups": sum(n < most[replayed] for replayed, n in fresh),
        "float_trajectories": logged,
        "float_share": logged / len(trajectories) if trajectories else None,
        "validations_expected": every and len({0, *range(every, last + 1, every), last}),
        "validations": len({r["step"] for r in evaluations if r["benchmark"] == "validation"}),
        "test_samples": sum(
            row["benchmark"] != "validation" and row["step"] == last for row in evaluations
        ),
    }


def lost(table: str, **where: Any) -> list[Row]:
    """The rows of a table of the golden lake without those that have all these values."""
    found = rows(table)
    kept = [row for row in found if any(row[name] != value for name, value in where.items())]
    assert len(kept) < len(found)
    return kept


@pytest.mark.parametrize(
    ("table", "where", "missing"),
    [
        ("steps", {"step": 7}, "1 of 16 rows of steps, the first of step 7"),
        ("trajectories", {"step": 7, "group": 2}, "groups of 1 steps"),
        ("trajectories", {"step": 7, "group": 2, "slot": 5}, "rollouts of 1 groups"),
        ("trajectories", {"step": 7}, "groups of 1 steps"),
        ("evaluations", {"step": 12}, "1 of 5 validations"),
        ("evaluations", {"benchmark": "test_id"}, None),  # another test set is there
        ("evaluations", {"step": 16}, "1 of 5 validations; test samples of the tested step"),
    ],
)
def test_what_a_log_has_lost_is_named(table: str, where: Row, missing: str | None) -> None:
    hit, *others = [row["run"] for row in rows("runs") if row["arm"] == "exgrpo"]
    names = ("runs", "steps", "trajectories", "evaluations")
    tables = {name: rows(name) for name in names} | {table: lost(table, run=hit, **where)}
    with made_catalog(**tables) as made:
        frame = answer(made, "log_coverage", run=[hit, *others])
    told = dict(frame.select("run", "missing").iter_rows())
    assert told == {hit: missing} | dict.fromkeys(others)


def test_groups_without_their_trajectories_and_a_stopped_run() -> None:
    settings = '{"training": {"steps": 10}, "evaluation": {"every": 4}}'
    run = RUN | {"steps": 6, "status": "stopped", "settings": settings}
    steps = [{"run": "r", "step": step, "groups": 1} for step in (1, 2, 4, 6)]
    visits = [
        {"run": "r", "step": step, "group": 0, "question": "q", "fresh": 3, "replayed": 1}
        for step in (1, 2, 4, 6)
    ]
    with made_catalog(runs=[run], steps=steps, visits=visits) as made:
        found = answer(made, "log_coverage").row(0, named=True)
    assert (found["groups"], found["trajectories_expected"], found["trajectories"]) == (4, 16, 0)
    assert (found["validations_expected"], found["float_share"]) == (2, None)
    assert found["missing"] == (
        "2 of 6 rows of steps, the first of step 3; 16 of 16 trajectories; 2 of 2 validations"
    )


@pytest.mark.parametrize(
    ("tested", "missing"), [(10, None), (8, "test samples of the tested step")]
)
def test_a_finished_run_is_validated_at_its_end_and_tested_there(
    tested: int, missing: str | None
) -> None:
    settings = '{"training": {"steps": 10}, "evaluation": {"every": 4}}'
    run = RUN | {"steps": 10, "status": "done", "settings": settings}
    steps = [{"run": "r", "step": step, "groups": 0} for step in range(1, 11)]
    samples = [
        {"run": "r", "step": step, "benchmark": benchmark, "question": "q", "sample": 0}
        for benchmark, at in (("validation", (0, 4, 8, 10)), ("test_id", (tested,)))
        for step in at
    ]
    with made_catalog(runs=[run], steps=steps, evaluations=samples) as made:
        found = answer(made, "log_coverage").row(0, named=True)
    assert (found["validations_expected"], found["validations"]) == (4, 4)
    assert found["missing"] == missing


def test_a_best_checkpoint_is_tested_at_its_own_step() -> None:
    settings = '{"training": {"steps": 10}, "evaluation": {"every": 10, "checkpoint": "best"}}'
    run = RUN | {"steps": 10, "status": "done", "settings": settings}
    steps = [{"run": "r", "step": step, "groups": 0} for step in range(1, 11)]
    samples = [
        {"run": "r", "step": step, "benchmark": benchmark, "question": "q", "sample": 0}
        for benchmark, at in (("validation", (0, 10)), ("aime", (8,)))
        for step in at
    ]
    with made_catalog(runs=[run], steps=steps, evaluations=samples) as made:
        found = answer(made, "log_coverage").row(0, named=True)
    assert (found["test_samples"], found["missing"]) == (1, None)
