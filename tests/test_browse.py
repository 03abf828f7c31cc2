"""Pages of trajectories, one whole trajectory, and its tokens."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from lake_fixture import HOSTILE, STUDY, DemoResults

from analysis import browse
from analysis.errors import UserError
from analysis.tokens import read_tokens
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


def test_every_sortable_column_can_be_sorted_by(connection: duckdb.DuckDBPyConnection) -> None:
    for name in browse.SORTABLE:
        assert browse.page(connection, replace(FILTERS, sort=name), 0, 1).frame.height == 1


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
        frame = read_tokens(demo.results, row["run"], row["trajectory"])
        count = len(row["token_ids"])
        assert frame["position"].to_list() == list(range(count))
        assert frame["token_id"].to_list() == row["token_ids"]
        assert frame["text"].to_list() == [words[token] for token in row["token_ids"]]
        assert frame["behaviour_logprob"].to_list() == pytest.approx(row["behaviour_logprobs"])
        floats = row["entropies"] or [None] * count
        assert frame["entropy"].to_list() == [f if f is None else pytest.approx(f) for f in floats]


@pytest.mark.parametrize("run", ["nobody", "../../etc", "' OR 1=1 --"])
def test_tokens_of_nobody_are_none(demo: DemoResults, run: str) -> None:
    assert read_tokens(demo.results, run, "x:1:0:0").is_empty()


def test_tokens_of_an_unknown_trajectory_are_none(demo: DemoResults) -> None:
    run = next(iter(demo.study.runs))
    assert read_tokens(demo.results, run, "' OR 1=1 --").is_empty()


def test_a_missing_token_file_is_named(demo: DemoResults, tmp_path: Path) -> None:
    shutil.copytree(demo.results / "lake", tmp_path / "lake")
    run = next(iter(demo.study.runs))
    (path := tmp_path / "lake" / "tokens" / f"{run}.parquet").unlink()
    with pytest.raises(UserError, match="missing from the lake") as error:
        read_tokens(tmp_path, run, f"{run}:1:0:0")
    assert str(path) in str(error.value)
