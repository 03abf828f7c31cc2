"""What is broken on disk or wrong in the address: an error on the screen, never a traceback."""

import shutil
from pathlib import Path

import duckdb
import pytest
from lake_fixture import DemoResults
from screens import SCREENS, open_screen

from app import data


@pytest.fixture
def broken(analysed: DemoResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the results that a test may break."""
    shutil.copytree(analysed.results, tmp_path / "results")
    monkeypatch.setenv("EXGRPO_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.mark.parametrize("name", SCREENS)
@pytest.mark.parametrize("content", [b"no database", b""], ids=["torn", "empty"])
def test_a_corrupt_catalog_is_an_error_on_each_screen(
    name: str, content: bytes, broken: Path
) -> None:
    (broken / "workbench.duckdb").write_bytes(content)
    assert "exgrpo catalog" in open_screen(name).code[-1].value


@pytest.mark.parametrize("name", SCREENS)
def test_a_catalog_with_damaged_blocks_is_an_error_on_each_screen(name: str, broken: Path) -> None:
    path = broken / "workbench.duckdb"
    content = bytearray(path.read_bytes())
    content[3 * 4096 :] = bytes(len(content) - 3 * 4096)
    path.write_bytes(content)
    test = open_screen(name)
    assert len(test.error) == 1
    assert "\n" not in test.code[-1].value


def test_a_missing_token_file_is_an_error(broken: Path, analysed: DemoResults) -> None:
    row = analysed.rows["tokens"][0]
    (broken / "lake" / "tokens" / f"{row['run']}.parquet").unlink()
    test = open_screen("trajectories", trajectory=row["trajectory"], view="entropy")
    assert "missing from the lake" in test.code[-1].value


def test_a_search_beyond_the_time_limit_is_an_error(
    broken: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = "(SELECT count(*) FROM range(100000000000) a, range(1000000) b)"
    with duckdb.connect(broken / "workbench.duckdb") as catalog:
        catalog.execute("ALTER TABLE runs RENAME TO known")
        catalog.execute(f"CREATE VIEW runs AS SELECT * FROM known WHERE {endless} > seed")
    monkeypatch.setattr(data, "TIME_LIMIT", 2.0)
    assert "time limit of 2 s" in open_screen("trajectories", text="any").code[-1].value


@pytest.mark.parametrize("page", ["5", "999999", str(2**53 - 1)])
def test_a_page_beyond_the_end_is_the_last_one(
    results: Path, analysed: DemoResults, page: str
) -> None:
    rows = len(analysed.rows["trajectories"])
    test = open_screen("trajectories", page=page, size="100")
    assert len(test.dataframe[0].value) == (rows % 100 or 100)


@pytest.mark.parametrize(
    "query",
    [
        {"page": "-1"},
        {"page": "x", "size": "0"},
        {"size": "100000000"},
        {"step_min": str(10**30), "entropy_max": "inf", "entropy_min": "nan"},
        {"bucket": [str(10**40)], "sort": "step; drop table runs", "view": "no"},
        {"window": "-3", "trajectory": "\x1b"},
    ],
)
def test_nonsense_in_the_address_is_no_traceback(query: dict[str, str], results: Path) -> None:
    open_screen("trajectories", **query)
