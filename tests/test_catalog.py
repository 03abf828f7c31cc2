"""The catalog: what is in it, what is left out, and how it is replaced."""

import shutil
from pathlib import Path

import duckdb
import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults, demo_study

from analysis.catalog import open_catalog
from analysis.catalog_build import INFO
from analysis.errors import UserError
from analysis.queries import answer, ask
from analysis.tokens import read_tokens
from exgrpo.tables import DERIVED, TABLES
from pipeline.catalog import build_catalog
from pipeline.lake import add_import


def test_every_table_but_tokens_holds_every_row(
    demo: DemoResults, connection: duckdb.DuckDBPyConnection
) -> None:
    for name in TABLES.keys() - {"tokens"} - {table.name for table in DERIVED}:
        count = ask(connection, f"SELECT count(*) FROM {name}").frame.item()
        assert count == len(demo.rows.get(name, [])), name
    with pytest.raises(UserError, match="tokens does not exist"):
        ask(connection, "SELECT count(*) FROM tokens")


def test_questions_and_vocabulary_are_there_once(
    demo: DemoResults, connection: duckdb.DuckDBPyConnection
) -> None:
    words = ask(connection, "SELECT token_id, text FROM vocabulary ORDER BY token_id").frame
    assert words.rows() == [(row["token_id"], row["text"]) for row in demo.rows["vocabulary"]]


def test_meaning_and_unit_of_every_column_are_in_the_database(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    found = ask(
        connection, "SELECT table_name, column_name, comment FROM duckdb_columns()", 10_000
    ).frame
    comments = {(table, column): comment for table, column, comment in found.iter_rows()}
    for table in TABLES.values():
        for column in table.columns if table.name != "tokens" else ():
            comment = comments[table.name, column.name]
            assert comment.startswith(column.meaning)
            assert not column.unit or comment.endswith(f"[{column.unit}]")
    assert all(comments["catalog_info", name] for name in INFO.names)


def test_a_run_that_its_study_no_longer_lists_is_left_out_and_said(
    own: DemoResults, capsys: pytest.CaptureFixture[str]
) -> None:
    fewer = demo_study(seeds=(0,))
    assert fewer.base_run == own.study.base_run
    (own.results / STUDY / "study.json").write_text(fewer.model_dump_json())
    build_catalog(own.results, STUDY)
    gone = sorted(own.study.runs.keys() - fewer.runs.keys())
    assert all(f"left out of the catalog: {run}: " in capsys.readouterr().out for run in gone[:1])
    with open_catalog(own.catalog) as connection:
        kept = ask(connection, "SELECT run FROM runs").frame["run"].to_list()
        dead = ask(connection, "SELECT count(*) FROM trajectories ANTI JOIN runs USING (run)")
        named = ask(connection, "SELECT entry FROM catalog_info WHERE left_out IS NOT NULL").frame
    assert sorted(kept) == sorted([*fewer.runs, fewer.base_run])
    assert dead.frame.item() == 0
    assert named["entry"].to_list() == gone
    assert gone[0] in (own.results / STUDY / "catalog.json").read_text()


def test_a_study_of_another_version_is_left_out_and_does_not_stop_the_rest(
    own: DemoResults,
) -> None:
    (own.results / STUDY / "study.json").write_text('{"name": "demo"}')
    build_catalog(own.results)
    with open_catalog(own.catalog) as connection:
        reasons = ask(connection, "SELECT DISTINCT left_out FROM catalog_info").frame
    assert "another version" in reasons.item()


def test_an_import_needs_no_study(own: DemoResults) -> None:
    run = next(iter(own.study.runs))
    folder = own.results / "imports" / "mine"
    shutil.copytree(own.results / STUDY / "runs" / run, folder)
    add_import("mine", own.results)
    shutil.rmtree(own.results / STUDY)
    build_catalog(own.results)
    with open_catalog(own.catalog) as connection:
        frame = ask(connection, "SELECT entry FROM catalog_info WHERE left_out IS NULL").frame
    assert frame["entry"].to_list() == ["import-mine"]


def test_a_missing_catalog_says_how_to_build_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="exgrpo catalog") as error:
        open_catalog(tmp_path / "workbench.duckdb")
    assert str(tmp_path) in str(error.value)


def test_a_file_that_is_no_database_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "workbench.duckdb"
    path.write_text("not a database" * 1000)
    with pytest.raises(UserError, match="Build it again"):
        open_catalog(path)


def test_a_missing_or_wrong_lake_file_is_named_and_the_old_catalog_stays(own: DemoResults) -> None:
    run = next(iter(own.study.runs))
    path = own.results / "lake" / "steps" / f"{run}.parquet"
    before = own.catalog.read_bytes()
    pl.read_parquet(path).head(1).write_parquet(path)
    with pytest.raises(UserError, match="torn or changed") as error:
        build_catalog(own.results)
    assert str(path) in str(error.value)
    path.unlink()
    with pytest.raises(UserError, match="missing from the lake"):
        build_catalog(own.results)
    assert own.catalog.read_bytes() == before


def test_a_new_catalog_takes_the_place_of_the_old_while_it_is_open(own: DemoResults) -> None:
    old = open_catalog(own.catalog)
    (own.results / "lake" / "entries" / f"{own.study.base_run}.json").unlink()
    build_catalog(own.results)
    assert ask(old, "SELECT count(*) FROM runs").frame.item() == 5
    old.close()
    with open_catalog(own.catalog) as new:
        assert ask(new, "SELECT count(*) FROM runs").frame.item() == 4


def test_a_results_folder_with_brackets_and_quotes_works(
    demo: DemoResults, tmp_path: Path
) -> None:  # o49
    shutil.copytree(demo.results, results := tmp_path / "re[s]ult's *")
    build_catalog(results, STUDY)
    with open_catalog(results / "workbench.duckdb") as connection:
        assert ask(connection, "SELECT count(*) FROM steps").frame.item() == len(demo.rows["steps"])
    row = demo.rows["tokens"][0]
    assert read_tokens(results / "lake", row["run"], row["trajectory"]).height == len(
        row["token_ids"]
    )


def test_a_catalog_of_another_version_is_to_be_built_again(tmp_path: Path) -> None:
    path = tmp_path / "old.duckdb"
    duckdb.connect(path).close()
    with open_catalog(path) as connection, pytest.raises(UserError, match="another version"):
        answer(connection, "benchmark_scores")
