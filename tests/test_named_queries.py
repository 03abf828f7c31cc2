"""The named queries: each against a plain loop over the rows that were logged."""

import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import ARMS, SEEDS, STEPS, STUDY, DemoResults
from polars.testing import assert_frame_equal

from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.queries import answer, ask, named_queries
from exgrpo.tables import TABLES, TOKENS

Rows = list[dict[str, Any]]
BY_ID = ("group", "lineage", "question_history", "run_buckets")
BY_STUDY = [name for name in named_queries() if name not in BY_ID]
STUDIES = ("again", "golden", "imports")
SOME = {"text": "some", "text[]": ["some"], "integer": 1, "double": 0.5, "boolean": True}
KNOWN = {"benchmark": "validation", "arm_a": "exgrpo", "arm_b": "on_policy"}


def share(values: list[Any]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


@pytest.mark.parametrize("name", named_queries())
def test_every_named_query_declares_its_columns(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    query = named_queries()[name]
    frame = answer(connection, name, **needed(name))
    assert frame.columns == list(query.columns)
    assert not any(isinstance(kind, pl.Decimal) for kind in frame.schema.values())
    assert query.purpose and query.grain


@pytest.mark.parametrize("name", BY_STUDY)
def test_every_other_query_is_about_a_study_or_runs(
    connection: duckdb.DuckDBPyConnection, golden: duckdb.DuckDBPyConnection, name: str
) -> None:
    """No row of another study or run; and an arm's rows are the same alone as among all arms."""
    for scope in ({"study": "no such study"}, {"run": ["no such run"]}):
        assert answer(connection, name, **needed(name), **scope).is_empty()
    everything = answer(golden, name, **needed(name))
    if "arm" in everything.columns:
        sql = "select run from runs where arm = 'exgrpo'"
        runs = [run for (run,) in golden.sql(sql).fetchall()]
        alone = answer(golden, name, **needed(name), run=runs)
        assert_frame_equal(alone, everything.filter(pl.col("arm") == "exgrpo"))


@pytest.fixture(scope="module")
def two_studies(
    golden_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The golden catalog, with all runs but those of seed 1 once more, in a study `again`."""
    path = tmp_path_factory.mktemp("again") / "workbench.duckdb"
    shutil.copy(golden_path, path)
    with duckdb.connect(path) as made:
        picked = "select run from runs where study <> 'again' and seed is distinct from 1"
        for name in (table.name for table in TABLES.values() if table is not TOKENS):
            columns = made.table(name).columns
            ids = [column for column in ("run", "trajectory", "source") if column in columns]
            if "run" in ids:
                new = [f"'again-' || {column} as {column}" for column in ids]
                new += ["'again' as study"] * ("study" in columns)
                made.execute(
                    f"insert into {name} select * replace ({', '.join(new)}) from {name} "
                    f"where run in ({picked})"
                )
    with open_catalog(path) as opened:
        yield opened


@pytest.mark.parametrize("name", BY_STUDY)
def test_arms_of_one_name_in_two_studies_are_kept_apart(
    golden: duckdb.DuckDBPyConnection, two_studies: duckdb.DuckDBPyConnection, name: str
) -> None:
    """All studies together have the rows that each has alone, whatever others the catalog has."""
    few = {"most": 3} if "most" in named_queries()[name].parameters else {}
    given = needed(name) | few
    alone = [answer(two_studies, name, study=study, **given) for study in STUDIES]
    assert alone[0].height and alone[1].height + alone[2].height
    assert_frame_equal(alone[1], answer(golden, name, study="golden", **given))
    together = answer(two_studies, name, **given)
    assert together.columns[0] == "study"
    assert_frame_equal(together, pl.concat(alone))


def needed(name: str) -> dict[str, Any]:
    """A value for each parameter that the query requires: one that occurs, if it names an arm."""
    parameters = named_queries()[name].parameters.values()
    return {
        each.name: KNOWN.get(each.name, SOME[each.type]) for each in parameters if each.required
    }


BY_BENCHMARK: dict[str, dict[str, Any]] = {
    "compute_to_target": {"target": 0.5},
    "learning_curve": {},
    "paired_eval_diff": {"arm_a": "exgrpo", "arm_b": "on_policy"},
    "passk_curve": {},
}


@pytest.mark.parametrize(("name", "more"), BY_BENCHMARK.items())
def test_a_benchmark_that_does_not_occur_is_an_error(
    golden: duckdb.DuckDBPyConnection, name: str, more: dict[str, Any]
) -> None:
    with pytest.raises(UserError, match=r"benchmark vali .*: test_id, test_ood, validation$"):
        answer(golden, name, **more, benchmark="vali")
    # Where nothing was evaluated, nothing can be known: an import has no evaluations.
    frame = answer(golden, name, **more, benchmark="vali", study="imports")
    assert name == "compute_to_target" or frame.is_empty()


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (("exgrpo", "on-policy"), r"arm on-policy .*: exgrpo, highest_entropy, on_policy$"),
        (("no such arm", "on_policy"), "arm no such arm has no evaluations"),
        (("exgrpo", "exgrpo"), "arm_a and arm_b are both exgrpo"),
    ],
)
def test_arms_that_cannot_be_compared_are_an_error(
    golden: duckdb.DuckDBPyConnection, arms: tuple[str, str], message: str
) -> None:
    pair = dict(zip(("arm_a", "arm_b"), arms, strict=True))
    with pytest.raises(UserError, match=message):
        answer(golden, "paired_eval_diff", **pair, benchmark="validation")


def test_visits_by_marker_are_open_to_typed_sql(golden: duckdb.DuckDBPyConnection) -> None:
    totals = "select sum(marked), sum(right_fresh), sum(replayed_known) from "
    counts = "select sum(flawed), sum(checked), sum(replayed_checked) from visits"
    found = ask(golden, totals + "marked_visits('flawed')").frame
    assert found.rows() == ask(golden, counts).frame.rows() and found.row(0)[0]
    with pytest.raises(UserError, match="marker is flawed, shortcut, code or repetition, not x"):
        ask(golden, totals + "marked_visits('x')")


def test_runs_overview(
    demo: DemoResults, connection: duckdb.DuckDBPyConnection, trajectories: Rows
) -> None:
    frame = answer(connection, "runs_overview")
    expected = []
    for run in demo.rows["runs"]:
        key = run["run"]
        samples = [row for row in demo.rows["evaluations"] if row["run"] == key]
        steps = [row for row in demo.rows["steps"] if row["run"] == key]
        right = [
            row
            for row in trajectories
            if row["run"] == key and row["correct"] and not row["replayed"]
        ]
        last = [
            row["correct"]
            for row in samples
            if row["benchmark"] == "validation" and row["step"] == STEPS
        ]
        signal = sum(row["signal_groups"] for row in steps)
        expected.append(
            {name: run[name] for name in ("study", "run", "arm", "seed", "world", "steps")}
            | {
                "validation_accuracy": share(last),
                "signal_share": signal / sum(row["groups"] for row in steps) if steps else None,
                "flawed_share": share([not row["chain_valid"] for row in right]),
                "sampled_tokens": sum(row["sampled_tokens"] for row in steps) or None,
                "seconds": run["seconds"],
            }
        )
    assert_rows(frame, sorted(expected, key=lambda row: (row["arm"], row["seed"] or 0)))


def test_learning_curve(demo: DemoResults, connection: duckdb.DuckDBPyConnection) -> None:
    frame = answer(connection, "learning_curve", study=STUDY, benchmark="validation")
    runs = {row["run"]: row for row in demo.rows["runs"]}
    groups: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in demo.rows["evaluations"]:
        if row["benchmark"] == "validation":
            run = runs[row["run"]]
            groups[STUDY, run["arm"], run["seed"], row["run"], row["step"]].append(row)
    assert len(groups) == len(ARMS) * len(SEEDS) * 3
    expected = [
        dict(zip(("study", "arm", "seed", "run", "step"), key, strict=True))
        | {
            "questions": len({row["question"] for row in rows}),
            "samples": sum(row["correct"] is not None for row in rows),
            "accuracy": share([row["correct"] for row in rows]),
        }
        for key, rows in sorted(groups.items())
    ]
    assert_rows(frame, expected)


def test_buckets(connection: duckdb.DuckDBPyConnection, trajectories: Rows) -> None:
    frame = answer(connection, "buckets", study=STUDY)
    groups: dict[tuple[Any, ...], set[tuple[Any, ...]]] = defaultdict(set)
    entropies: dict[tuple[Any, ...], list[float]] = defaultdict(list)
    for row in trajectories:
        key = (STUDY, row["arm"], (row["step"] - 1) // 10 * 10 + 1, row["group_successes"])
        groups[key].add((row["run"], row["step"], row["group"]))
        if not row["replayed"]:
            entropies[key].append(row["mean_entropy"])
    expected = [
        dict(zip(("study", "arm", "first_step", "group_successes"), key, strict=True))
        | {"groups": len(groups[key]), "mean_entropy": share(entropies[key])}
        for key in sorted(groups)
    ]
    assert_rows(frame, expected)


def test_group(connection: duckdb.DuckDBPyConnection, trajectories: Rows) -> None:
    run = trajectories[-1]["run"]
    frame = answer(connection, "group", run=run, step="3", group="1")  # text, as a page hands it
    rows = [row for row in trajectories if (row["run"], row["step"], row["group"]) == (run, 3, 1)]
    assert [row["slot"] for row in rows] == [0, 1, 2, 3]
    assert_rows(frame, [{name: row.get(name) for name in frame.columns} for row in rows])
    with pytest.raises(UserError, match=r"query 'group': parameter 'step': .*'three'"):
        answer(connection, "group", run=run, step="three", group=1)


def test_lineage(connection: duckdb.DuckDBPyConnection, trajectories: Rows) -> None:
    counts: dict[str, int] = defaultdict(int)
    for row in trajectories:
        if row["replayed"]:
            counts[row["source"]] += 1
    source = max(counts, key=lambda key: counts[key])
    assert counts[source] > 1
    rows = [row for row in trajectories if source in (row["trajectory"], row.get("source"))]
    for start in (source, rows[-1]["trajectory"]):  # from the source, and from a replay of it
        frame = answer(connection, "lineage", trajectory=start)
        assert_rows(frame, [{name: row.get(name) for name in frame.columns} for row in rows])
        assert frame["replayed"].to_list() == [False] + [True] * counts[source]


def test_question_history(connection: duckdb.DuckDBPyConnection, trajectories: Rows) -> None:
    last = trajectories[-1]
    frame = answer(connection, "question_history", run=last["run"], question=last["question"])
    rows = [
        {name: row.get(name) for name in frame.columns}
        for row in trajectories
        if (row["run"], row["question"]) == (last["run"], last["question"])
    ]
    assert_rows(frame, rows)


def assert_rows(frame: pl.DataFrame, expected: Rows) -> None:
    assert frame.height == len(expected)
    for found, row in zip(frame.to_dicts(), expected, strict=True):
        assert found == pytest.approx(row)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("bucket", {}, "Did you mean 'buckets'"),
        ("buckets", {"studi": "x"}, "Did you mean 'study'"),
        ("learning_curve", {}, "needs the parameter 'benchmark': validation"),
    ],
)
def test_wrong_names_and_parameters_are_errors(
    connection: duckdb.DuckDBPyConnection, name: str, parameters: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        answer(connection, name, **parameters)


def test_studies(golden: duckdb.DuckDBPyConnection, two_studies: duckdb.DuckDBPyConnection) -> None:
    for connection in (golden, two_studies):
        rows = "select study, count(*), sum(coalesce(steps, 0))::bigint from runs"
        sql = f"{rows} group by study order by study"
        assert answer(connection, "studies").rows() == connection.sql(sql).fetchall()
