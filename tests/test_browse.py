"""Pages of trajectories, one whole trajectory, and its tokens."""

import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from lake_fixture import HOSTILE, STUDY, DemoResults

from analysis import browse, paging
from analysis.compaction import compact
from analysis.errors import UserError
from analysis.tokens import read_tokens
from exgrpo.records import Recorder
from exgrpo.tables import TABLES

Rows = list[dict[str, Any]]


FILTERS = browse.Filters()


@pytest.mark.parametrize(
    ("changes", "keep"),
    [
        ({}, lambda row: True),
        ({"arms": ("exgrpo",)}, lambda row: row["arm"] == "exgrpo"),
        ({"study": "another"}, lambda row: False),
        ({"step_min": 2, "step_max": 3}, lambda row: 2 <= row["step"] <= 3),
        ({"bucket": (0, 4)}, lambda row: row["group_successes"] in (0, 4)),
        ({"replayed": True}, lambda row: row["replayed"]),
        ({"replayed": False}, lambda row: not row["replayed"]),
        ({"correct": False}, lambda row: row["correct"] is False),
        ({"chain_valid": True, "correct": True}, lambda r: r["chain_valid"] and r["correct"]),
        (
            {"entropy_min": 0.3, "entropy_max": 0.5},
            lambda row: 0.3 <= row["mean_entropy"] <= 0.5,
        ),
        ({"text": "ONERROR=alert"}, lambda row: "onerror=alert" in row["response"]),
        ({"text": "%"}, lambda row: "%" in row["response"]),
        ({"text": "'; DROP TABLE runs; --"}, lambda row: False),
    ],
)
def test_page_filters(
    connection: duckdb.DuckDBPyConnection, trajectories: Rows, changes: Any, keep: Any
) -> None:
    found = browse.page(connection, replace(FILTERS, **changes), 0, 10_000)
    kept = {row["trajectory"] for row in trajectories if keep(row)}
    assert set(found.frame["trajectory"]) == kept
    assert found.total == found.frame.height == len(kept)


def test_page_sorts_and_cuts(connection: duckdb.DuckDBPyConnection, trajectories: Rows) -> None:
    filters = replace(FILTERS, sort="mean_entropy", descending=True)
    found = browse.page(connection, filters, 10, 5)
    entropies = sorted((row["mean_entropy"] for row in trajectories), reverse=True)
    assert found.frame["mean_entropy"].to_list() == entropies[10:15]
    assert found.total == len(trajectories)


@pytest.mark.parametrize("sort", ['r"; DROP TABLE t; --', "nosuch", "", "1"])
def test_page_refuses_an_unknown_sort_column(
    connection: duckdb.DuckDBPyConnection, sort: str
) -> None:  # o49
    with pytest.raises(UserError, match="cannot sort by"):
        browse.page(connection, replace(FILTERS, sort=sort), 0, 5)


@pytest.mark.parametrize("few", [paging.FEW_ROWS, 0])  # 0: as if there were millions
@pytest.mark.parametrize("descending", [False, True])
def test_pages_by_every_column_are_those_of_a_plain_sort(
    connection: duckdb.DuckDBPyConnection,
    trajectories: Rows,
    monkeypatch: pytest.MonkeyPatch,
    descending: bool,
    few: int,
) -> None:
    monkeypatch.setattr(paging, "FEW_ROWS", few)
    for name in browse.sortable("training"):
        expected = plainly_sorted(trajectories, name, descending)
        filters = replace(FILTERS, sort=name, descending=descending)
        for offset in (47, len(expected) - 3):
            found = browse.page(connection, filters, offset, 50)
            assert found.frame["trajectory"].to_list() == expected[offset : offset + 50], name
            assert found.total == len(expected)


def test_a_page_beyond_the_end_is_empty(
    connection: duckdb.DuckDBPyConnection, trajectories: Rows
) -> None:
    for offset in (len(trajectories), 10**12):
        found = browse.page(connection, FILTERS, offset, 50)
        assert found.frame.is_empty()
        assert found.frame.columns == ["trajectory", *browse.first_columns("training")]
        assert found.total == len(trajectories)


def plainly_sorted(rows: Rows, name: str, descending: bool) -> list[str]:
    """Ids by a column, nulls last, ties in the order of the log."""
    rows = sorted(rows, key=lambda row: (row["run"], row["step"], row["group"], row["slot"]))
    rows = [{**row, "age": age_of(row)} for row in rows]
    known = [row for row in rows if row.get(name) is not None]
    known.sort(key=lambda row: row[name], reverse=descending)  # keeps the order of equals
    return [row["trajectory"] for row in known + [row for row in rows if row.get(name) is None]]


def age_of(row: dict[str, Any]) -> int | None:
    return None if row["birth_step"] is None else row["step"] - row["birth_step"]


@pytest.mark.parametrize("few", [paging.FEW_ROWS, 0])
@pytest.mark.parametrize("descending", [False, True])
def test_numbers_that_are_no_numbers_have_their_place_too(
    monkeypatch: pytest.MonkeyPatch, descending: bool, few: int
) -> None:
    monkeypatch.setattr(paging, "FEW_ROWS", few)
    values = [math.nan, 0.5, None, -math.inf, 0.5, math.inf, 0.5001, None, math.nan, -3.2, 1e300]
    numbers = {place: value for place, value in enumerate(values) if value is not None}
    # In DuckDB not-a-number is the greatest, and equal to itself.
    known = sorted(numbers, key=lambda p: (math.isnan(numbers[p]), numbers[p]), reverse=descending)
    expected = known + [place for place, value in enumerate(values) if value is None]
    with duckdb.connect() as made:
        made.execute(
            'CREATE TABLE trajectories (run TEXT, step INT, "group" INT, slot INT, nll DOUBLE)'
        )
        rows = [("run", 1, 0, slot, value) for slot, value in enumerate(values)]
        made.executemany("INSERT INTO trajectories VALUES (?, ?, ?, ?, ?)", rows)
        order = paging.Order(TABLES["trajectories"], "nll", descending)
        selection = paging.Selection(made, (), {})
        pages = [paging.rows_of_page(selection, order, place, 1) for place in range(len(values))]
    assert pages == [([place], len(values)) for place in expected]


def test_a_trajectory_comes_with_its_question_and_run(
    demo: DemoResults, connection: duckdb.DuckDBPyConnection, trajectories: Rows
) -> None:
    row = next(row for row in trajectories if row["response"] == HOSTILE)
    question = next(q for q in demo.rows["questions"] if q["question"] == row["question"])
    found = browse.trajectory(connection, row["trajectory"]).to_dicts()
    assert len(found) == 1
    assert found[0] == pytest.approx(
        dict.fromkeys(TABLES["trajectories"].names)
        | row
        | {name: question[name] for name in ("text", "prompt", "gold")}
        | {"study": STUDY, "tokenizer": "tok12345"}
    )
    assert browse.trajectory(connection, "nobody:1:0:0").is_empty()


# --- tokens ---


def test_tokens_of_a_trajectory(demo: DemoResults) -> None:
    words = {row["token_id"]: row["text"] for row in demo.rows["vocabulary"]}
    with_floats, without = demo.rows["tokens"][0], demo.rows["tokens"][3]
    assert without["entropies"] is None
    for row in (with_floats, without):
        frame = read_tokens(demo.results / "lake", row["run"], row["trajectory"])
        count = len(row["token_ids"])
        assert frame["position"].to_list() == list(range(count))
        assert frame["token_id"].to_list() == row["token_ids"]
        assert frame["text"].to_list() == [words[token] for token in row["token_ids"]]
        assert frame["behaviour_logprob"].to_list() == pytest.approx(row["behaviour_logprobs"])
        floats = row["entropies"] or [None] * count
        assert frame["entropy"].to_list() == [f if f is None else pytest.approx(f) for f in floats]


@pytest.mark.parametrize("run", ["nobody", "../../etc", "' OR 1=1 --"])
def test_tokens_of_nobody_are_none(demo: DemoResults, run: str) -> None:
    assert read_tokens(demo.results / "lake", run, "x:1:0:0").is_empty()


@pytest.mark.parametrize(
    "trajectory",
    ["' OR 1=1 --", "{run}:1:0", "{run}:1:0:99", "other:1:0:0", "{run}:1:0:" + "9" * 30],
)
def test_tokens_of_an_unknown_trajectory_are_none(demo: DemoResults, trajectory: str) -> None:
    run = next(iter(demo.study.runs))
    assert read_tokens(demo.results / "lake", run, trajectory.format(run=run)).is_empty()


def test_a_missing_token_file_is_named(demo: DemoResults, tmp_path: Path) -> None:
    shutil.copytree(demo.results / "lake", tmp_path / "lake")
    run = next(iter(demo.study.runs))
    (path := tmp_path / "lake" / "tokens" / f"{run}.parquet").unlink()
    with pytest.raises(UserError, match="missing from the lake") as error:
        read_tokens(tmp_path / "lake", run, f"{run}:1:0:0")
    assert str(path) in str(error.value)


def test_a_torn_token_file_is_named(demo: DemoResults, tmp_path: Path) -> None:
    shutil.copytree(demo.results / "lake", tmp_path / "lake")
    run = next(iter(demo.study.runs))
    path = tmp_path / "lake" / "tokens" / f"{run}.parquet"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(UserError, match="torn or changed") as error:
        read_tokens(tmp_path / "lake", run, f"{run}:1:0:0")
    assert str(path) in str(error.value)


def test_tokens_of_a_run_that_names_no_tokenizer_have_no_text(tmp_path: Path) -> None:
    row = {"run": "import-x", "step": 3, "group": 0, "slot": 0, "trajectory": "import-x:3:0:0"}
    recorder = Recorder(tmp_path / "log")
    recorder.add("tokens", [row | {"token_ids": [5, 6], "entropies": [0.25, 0.5]}])
    recorder.flush(3, 3)
    parts = list((tmp_path / "log" / "tokens").glob("*.parquet"))
    run = {"run": "import-x", "study": "imports", "arm": "x", "status": "imported"}
    compact("import-x", "imports", run, {"tokens": parts}, tmp_path / "lake")
    tokens = read_tokens(tmp_path / "lake", "import-x", "import-x:3:0:0")
    assert tokens.select("token_id", "text", "entropy").rows() == [(5, None, 0.25), (6, None, 0.5)]
