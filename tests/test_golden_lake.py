"""The golden lake is small and whole, and of the settings that lie beside it."""

import json
import shutil
from pathlib import Path

import duckdb
import pytest
from golden_lake import LAKE, rows

from analysis.lake import LAYOUT, check_files, read_entries
from exgrpo.settings import RunSettings
from exgrpo.studies import load_study
from exgrpo.tables import TABLES, TOKENS, VOCABULARY

MOST_BYTES = 1_000_000


def test_it_is_under_a_megabyte() -> None:
    sizes = [file.stat().st_size for file in LAKE.rglob("*") if file.is_file()]
    assert 100_000 < sum(sizes) < MOST_BYTES


def test_every_file_belongs_to_an_entry_and_is_what_was_written() -> None:
    entries = read_entries(LAKE)
    assert {entry.layout for entry in entries} == {LAYOUT}
    check_files(entries, LAKE)
    listed = {LAKE / file.path for entry in entries for file in entry.tables.values()}
    assert listed == set(LAKE.rglob("*.parquet"))


@pytest.mark.parametrize("table", TABLES)
def test_every_table_has_rows(table: str, golden: duckdb.DuckDBPyConnection) -> None:
    assert rows(table)
    if table != TOKENS.name:
        found = golden.sql(f"SELECT count(*) FROM {table}").fetchall()[0][0]
        once = {str(row) for row in rows(table)}  # the vocabulary comes with every run
        assert found == len(once if table == VOCABULARY.name else rows(table))


def test_its_runs_are_those_of_the_settings_beside_it(tmp_path: Path) -> None:
    root = LAKE.parents[2]
    shutil.copytree(root / "config" / "arms", tmp_path / "arms")
    shutil.copytree(LAKE.parent / "config", tmp_path, dirs_exist_ok=True)
    study = load_study("golden", tmp_path)
    made = {row["run"]: row for row in rows("runs")}
    assert made.keys() >= {study.base_run, "import-riddles"}
    # A setting that has come since has its default, under which the lake was made.
    assert sorted(
        json.dumps(RunSettings.model_validate_json(row["settings"]).model_dump(), sort_keys=True)
        for row in made.values()
        if row["seed"] is not None
    ) == sorted(json.dumps(run.model_dump(), sort_keys=True) for run in study.runs.values())


def test_it_holds_what_the_questions_are_about() -> None:
    """Right and wrong, cut, flawed and shortcut answers, replays with a choice, retirements."""
    trajectories = rows("trajectories")
    right = [row for row in trajectories if row["correct"]]
    assert 0.3 < len(right) / len(trajectories) < 0.7
    assert any(row["finish"] == "length" for row in right)
    assert any(row["shortcut"] for row in right)
    assert any(row["chain_valid"] is False and not row["shortcut"] for row in right)
    assert any(row["extracted"] is None for row in trajectories)
    assert any(row["code"] for row in right) and any(row["repetition"] for row in right)
    replayed = [row for row in trajectories if row["replayed"]]
    assert {row["run"].split("-")[0] for row in replayed} == {"exgrpo", "highest_entropy"}
    assert any(row["rank"] >= 2 for row in rows("candidates"))
    assert any(row["event"] == "retired" for row in rows("experience"))
    floats = [row for row in rows("tokens") if row["entropies"] is not None]
    assert 0 < len(floats) < len(rows("tokens")) / 4
    evaluations = rows("evaluations")
    assert len({row["step"] for row in evaluations if row["benchmark"] == "validation"}) == 5
    assert {row["sample"] for row in evaluations if row["benchmark"] == "test_ood"} == {0, 1, 2}
    verdicts = {row["trajectory"]: row["valid"] for row in rows("judgements")}
    labelled = [row for row in trajectories if row["trajectory"] in verdicts]
    assert any(verdicts[row["trajectory"]] is not row["correct"] for row in labelled)
