"""The demo that is kept with the code: small, whole, and cut from a study by a command."""

from pathlib import Path

import pytest
from lake_fixture import DemoResults
from screens import open_screen

from analysis.catalog import open_catalog
from analysis.lake import read_entries
from analysis.queries import ask
from exgrpo.errors import UserError
from exgrpo.tables import TOKENS, TRAJECTORIES
from pipeline import demo

MOST_BYTES = 5_000_000


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("demo") / "results"
    demo.open_demo(results)
    return results


def test_it_is_small_and_names_every_run_of_its_study() -> None:
    files = [path for path in demo.FOLDER.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST_BYTES
    study = demo.demo_study()
    entries = {entry.entry for entry in read_entries(demo.FOLDER / "lake")}
    assert entries == {*study.runs, study.base_run, f"questions-{study.name}"}


def test_it_has_every_rollout_and_token_of_its_questions(opened: Path) -> None:
    with open_catalog(opened / "workbench.duckdb") as connection:
        counts = ask(
            connection,
            "select count(distinct question) as questions, count(*) as rows, "
            "count(*) filter (group_size <> 8) as cut from trajectories",
        ).frame.row(0, named=True)
    tables = [entry.tables for entry in read_entries(opened / "lake")]
    tokens = sum(each[TOKENS.name].rows for each in tables if TOKENS.name in each)
    rows = sum(each[TRAJECTORIES.name].rows for each in tables if TRAJECTORIES.name in each)
    assert counts["questions"] == demo.QUESTIONS_KEPT
    assert tokens == rows == counts["rows"]


@pytest.mark.parametrize("name", ["overview", "claims", "live", "compare", "snowball", "buffer"])
def test_screens_show_it(name: str, opened: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXGRPO_RESULTS", str(opened))
    test = open_screen(name)
    assert not test.info, [item.value for item in test.info]
    assert any("25 of the 600 training questions" in str(item.value) for item in test.text)


def test_to_open_it_again_makes_nothing_anew(opened: Path) -> None:
    before = (opened / "workbench.duckdb").stat()
    demo.open_demo(opened)
    assert (opened / "workbench.duckdb").stat().st_mtime_ns == before.st_mtime_ns


def test_another_demo_takes_its_place_and_leaves_the_notes(
    own: DemoResults, tmp_path: Path
) -> None:
    results = tmp_path / "opened"
    for questions in (2, 3):
        demo.cut_demo(own.results, own.study, questions, tmp_path / "cut")
        demo.open_demo(results, tmp_path / "cut")
        (results / "notes.jsonl").touch()
    with open_catalog(results / "workbench.duckdb") as connection:
        found = ask(connection, "select count(distinct question) as n from trajectories").frame
    assert found["n"][0] == 3
    demo.open_demo(results, tmp_path / "cut")
    assert (results / "notes.jsonl").is_file()


def test_other_results_are_not_overwritten(own: DemoResults) -> None:
    (own.results / "demo-1").mkdir()  # a study of that name
    with pytest.raises(UserError, match="holds other results"):
        demo.open_demo(own.results)
    assert own.catalog.is_file()


def test_it_is_cut_from_a_study(own: DemoResults, tmp_path: Path) -> None:
    demo.cut_demo(own.results, own.study, 3, tmp_path / "cut")
    demo.open_demo(tmp_path / "opened", tmp_path / "cut")
    kept = sorted({row["question"] for row in own.rows["questions"] if row["split"] == "train"})[:3]
    expected = sorted(
        row["trajectory"] for row in own.rows["trajectories"] if row["question"] in kept
    )
    with open_catalog(tmp_path / "opened" / "workbench.duckdb") as connection:
        found = ask(connection, "select trajectory from trajectories order by all").frame
        answers = ask(connection, "select count(*) as n from evaluations").frame["n"][0]
    assert found["trajectory"].to_list() == expected
    assert answers == len(own.rows["evaluations"])


def test_a_study_that_is_not_whole_is_not_cut(own: DemoResults, tmp_path: Path) -> None:
    run = next(iter(own.study.runs))
    (own.results / "lake" / "entries" / f"{run}.json").unlink()
    with pytest.raises(UserError, match=run):
        demo.cut_demo(own.results, own.study, 3, tmp_path / "cut")
    assert not (tmp_path / "cut").exists()
