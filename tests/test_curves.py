"""What the dashboard draws from the log itself, and the queries behind it, against plain loops."""

import duckdb
import polars as pl
import pytest
from golden_scope import SCOPES, Scope, by, share
from observed import says_empty
from replay_loops import assert_same

from analysis.behind import clickable
from analysis.curves import COSTS, TRAINED, accuracy_by_cost, points_a_run, training_curve
from analysis.drawing import StudyFacts, study_facts
from analysis.health import ill
from analysis.queries import answer

ARM = ("study", "arm", "seed", "run")
STEP = (
    *("reward", "entropy", "signal_groups", "unanswered", "ungraded", "sampled_tokens", "length"),
    *("loss", "grad_norm", "skipped_updates"),
)


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_health_runs(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "health_runs", window=3, **scope.asked)
    steps = by(scope.rows("steps"), "run")
    expected = []
    for run, row in scope.runs.items():
        mine = steps.get((run,), [])
        last = max((each["step"] for each in mine), default=0)
        end = [each for each in mine if each["step"] > last - 3]

        def mean(name: str, rows: list[dict[str, object]] = end) -> float | None:
            return share(each[name] for each in rows)

        groups = sum(each["groups"] for each in end)
        signal = sum(each["signal_groups"] or 0 for each in end)
        expected.append(
            {name: row[name] for name in (*ARM, "status")}
            | {
                "steps": len(mine),
                "signal_share": signal / groups if groups else None,
                "ratio_replayed": mean("ratio_mean_replayed"),
                "ess_replayed": mean("ratio_ess_replayed"),
            }
            | {name: mean(name) for name in ("reward", "entropy", "length", "truncated_share")}
            | {name: mean(name) for name in ("clipped_share", "grad_norm")}
            | {
                name: sum(known)
                if (known := [r[name] for r in mine if r[name] is not None])
                else None
                for name in ("skipped_updates", "ungraded")
            }
        )
    assert_same(frame.select(list(expected[0])), expected, *ARM)
    assert set(frame.columns) == set(expected[0])


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_health_steps(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "health_steps", **scope.asked)
    expected = [{name: row[name] for name in (*ARM, "step", *STEP)} for row in scope.rows("steps")]
    assert_same(frame, expected, *ARM, "step")


@pytest.mark.parametrize("scope", SCOPES, ids=str)
def test_curve_steps(golden: duckdb.DuckDBPyConnection, scope: Scope) -> None:
    frame = answer(golden, "curve_steps", points=5, **scope.asked)
    expected = []
    for rows in by(scope.rows("steps"), "run").values():
        width = -(-max(row["step"] for row in rows) // 5)
        stretches: dict[int, list[dict[str, object]]] = {}
        for row in rows:
            stretches.setdefault((row["step"] - 1) // width, []).append(row)
        assert len(stretches) <= 5
        for part in stretches.values():
            numbers = [row["step"] for row in part]
            expected.append(
                {name: part[0][name] for name in ARM}
                | {"first_step": min(numbers), "last_step": max(numbers)}
                | {"ratio": share(row["ratio_mean_replayed"] for row in part)}
                | {
                    name: share(row[name] for row in part)
                    for name in ("reward", "entropy", "length", "buffer_questions")
                }
            )
    assert_same(frame.select(list(expected[0])), expected, *ARM, "first_step")
    assert set(frame.columns) == set(expected[0])


def test_accuracy_runs_over_every_cost(golden: duckdb.DuckDBPyConnection) -> None:
    facts = study_facts("golden", answer(golden, "study_runs", study="golden"))
    accuracy = answer(golden, "gain_over_time", study="golden")
    budgets = answer(golden, "validation_budgets", study="golden")
    arm = facts.arms[0]
    spent = budgets.filter(pl.col("arm") == arm).with_columns(minutes=pl.col("seconds") / 60)
    for by_cost, (column, label) in COSTS.items():
        plot = accuracy_by_cost(facts, accuracy, budgets, None, by_cost, (arm,))
        (line,) = [trace for trace in plot.data if trace.name == arm]
        means = spent.group_by("step").agg(at=pl.col(column).mean()).sort("step")
        assert list(line.x) == pytest.approx(means["at"].to_list())
        assert plot.layout.xaxis.title.text == label
        steps = [behind["step_min"] for _, _, behind in clickable(plot) if behind]
        assert steps == means["step"].to_list()
    empty = accuracy_by_cost(facts, accuracy.clear(), budgets.clear(), None, "time")
    assert says_empty(empty)


def test_accuracy_and_its_cost_are_of_the_same_seeds() -> None:
    """A second seed is still being trained: the accuracy does not hold it, nor may the cost."""
    spent = {"seed": [0, 0, 1], "step": [0, 10, 0], "sampled_tokens": [0, 100, 40]}
    budgets = pl.DataFrame(spent | {"study": "s", "run": "r", "arm": "a", "seconds": 1.0})
    points = [{"step": step, "value": 0.5, "low": 0.4, "high": 0.6} for step in (0, 10)]
    made = {"level": 0.95, "learning_curves": {"a": points}}
    plot = accuracy_by_cost(StudyFacts("s", "", [0, 1], ["a"]), None, budgets, made, "tokens")
    assert [list(trace.x) for trace in plot.data if trace.name == "a"] == [[0, 100]]


def test_before_the_analysis_a_seed_without_cost_counts_for_neither() -> None:
    of_seeds = pl.DataFrame({"study": "s", "arm": "a", "seed": [0, 1], "step": 10})
    accuracy = of_seeds.with_columns(accuracy=pl.Series([0.2, 0.8]), sampled_tokens=0)
    budgets = of_seeds.with_columns(
        run=pl.lit("r"), seconds=1.0, sampled_tokens=pl.Series([100, None])
    )
    facts = StudyFacts("s", "", [0, 1], ["a"])
    plot = accuracy_by_cost(facts, accuracy, budgets, None, "tokens")
    assert [(*t.x, *t.y) for t in plot.data if t.name == "a"] == [(100, 0.2)]


def test_a_training_curve_opens_the_steps_of_its_run() -> None:
    rows = pl.DataFrame(
        {
            "arm": ["a", "a", "z<b>"],
            "run": ["1e5", "1e5", "0012"],
            "first_step": [1, 3, 1],
            "last_step": [2, 4, 2],
            "reward": [0.1, 0.2, 0.3],
            "ratio": [None, None, None],
        },
        schema_overrides={"ratio": pl.Float64},
    )
    plot = training_curve(rows, "reward")
    assert plot is not None
    assert [(trace.name, trace.showlegend) for trace in plot.data] == [
        ("a", True),
        ("z&lt;b&gt;", True),
    ]
    assert [behind for _, _, behind in clickable(plot)] == [
        {"run": "1e5", "step_min": 1, "step_max": 2},
        {"run": "1e5", "step_min": 3, "step_max": 4},
        {"run": "0012", "step_min": 1, "step_max": 2},
    ]
    assert training_curve(rows, "ratio") is None and "reward" in TRAINED


def test_many_runs_get_fewer_points_each() -> None:
    assert [points_a_run(runs) for runs in (0, 12, 48, 1000)] == [200, 200, 50, 20]


def test_alarms_are_of_the_run_that_gives_them(golden: duckdb.DuckDBPyConnection) -> None:
    found = ill(golden, "golden")
    assert found.columns == ["run", "step", "sentence"]
    assert set(found["run"]) <= set(answer(golden, "study_runs", study="golden")["run"])
