"""A catalog that was changed entry by entry holds what one built at once holds, and costs less."""

import shutil
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from golden_lake import LAKE
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from analysis.catalog import open_catalog
from analysis.catalog_build import INFO, SHARED, build
from analysis.compaction import compact
from analysis.errors import UserError
from analysis.lake import Entry, read_entries
from exgrpo.records import Recorder
from exgrpo.tables import BOOL, FLOAT, FLOATS, INT, INTS, RUNS, TABLES, TOKENS, Table
from exgrpo.tables.manifest import live_parts

RUN_NAMES = ("on_policy-s0-1", "exgrpo-s0-2", "exgrpo-s1-3", "import-x")
NAMES = (*RUN_NAMES, "questions-a", "questions-b")
VERSIONS = (0, 1)
LEFT_OUT = "its study no longer lists it"

# Which entry changes, and to what: none, or one of its versions, which counts or is left out.
Change = tuple[str, tuple[int, bool] | None]
HELD = st.none() | st.tuples(st.sampled_from(VERSIONS), st.booleans())
CHANGES = st.lists(st.tuples(st.sampled_from(NAMES), HELD), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, int], Entry]:
    """Two versions of every entry; a question or a token that several hold may differ in them."""
    folder = tmp_path_factory.mktemp("stock")
    return {
        (name, version): made(name, version, folder / str(version))
        for name in NAMES
        for version in VERSIONS
    }


def made(name: str, version: int, folder: Path) -> Entry:
    """An entry with a few rows of every table that such an entry has."""
    recorder = Recorder(folder / name / "log")
    is_run = name in RUN_NAMES
    tables = [table for table in TABLES.values() if (table.name == "questions") is not is_run]
    for number, table in enumerate(table for table in tables if table is not RUNS):
        count = 1 + (len(name) + number + version) % 4
        recorder.add(table.name, (row(table, name, version, index) for index in range(count)))
    recorder.flush(1, 1)
    parts = {part.table: [recorder.log / part.path] for part in live_parts(recorder.log)}
    run = {"run": name, "study": f"study-{version}", "seed": version} if is_run else None
    entry = compact(name, "study", run, parts, folder / "lake")
    files = {  # they stay where they are, whichever lake they count in
        table: replace(file, path=str(folder / "lake" / file.path))
        for table, file in entry.tables.items()
    }
    return replace(entry, tables=files)


def row(table: Table, name: str, version: int, index: int) -> dict[str, Any]:
    """A row that has a value in every column; `index` makes its key."""
    of_type: dict[Any, Callable[[], Any]] = {
        INT: lambda: index,
        FLOAT: lambda: index + version / 2,
        BOOL: lambda: (index + version) % 2 == 0,
        INTS: lambda: [index, version],
        FLOATS: lambda: [0.5 * index],
    }
    shared = table.name in SHARED
    values = {
        column.name: of_type.get(column.type, lambda: f"{'' if shared else name} {version}")()
        for column in table.columns
    }
    keys = {key: f"{key}-{index}" for key in table.order if table.polars_schema[key] == pl.String}
    return values | keys | ({"run": name} if "run" in table.names else {})


def content(path: Path) -> dict[str, pl.DataFrame]:
    """Every row of every table, in one order; all but when the catalog was built."""
    with open_catalog(path) as connection:
        names = [table.name for table in TABLES.values() if table is not TOKENS]
        frames = {name: connection.sql(f"FROM {name} ORDER BY ALL").pl() for name in names}
        frames["scope"] = connection.sql("FROM scope('study-1', NULL) ORDER BY ALL").pl()
        info = connection.sql(f"FROM {INFO.name} ORDER BY ALL").pl()
        return frames | {INFO.name: info.drop("built", "lake")}


def assert_same(path: Path, other: Path) -> None:
    found, wanted = content(path), content(other)
    assert found.keys() == wanted.keys()
    for name, frame in wanted.items():
        assert_frame_equal(found[name], frame)


# The stock is read only, so that all examples may share it.
@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(changes=CHANGES)
@example(changes=[("exgrpo-s0-2", (1, True))])
@example(changes=[("exgrpo-s0-2", (0, False)), ("exgrpo-s0-2", (0, True))])
@example(changes=[("questions-a", (1, True)), ("questions-b", (1, True))])
def test_after_any_changes_it_is_as_if_built_at_once(
    changes: list[Change],
    stock: dict[tuple[str, int], Entry],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """From a lake of all entries on, so that no change makes the catalog mostly holes."""
    folder = tmp_path_factory.mktemp("catalogs")
    lake: dict[str, tuple[int, bool] | None] = dict.fromkeys(NAMES, (0, True))
    build([stock[name, 0] for name in NAMES], {}, folder, folder / "step by step.duckdb")
    for name, held in changes:
        lake[name] = held
        there = [(name, *held) for name, held in lake.items() if held]
        entries = [stock[name, version] for name, version, _ in there]
        left_out = {name: LEFT_OUT for name, _, counts in there if not counts}
        build(entries, left_out, folder, folder / "step by step.duckdb")
    build(entries, left_out, folder, folder / "at once.duckdb")
    assert_same(folder / "step by step.duckdb", folder / "at once.duckdb")
    shutil.rmtree(folder)


def test_at_once_means_every_row(stock: dict[tuple[str, int], Entry], tmp_path: Path) -> None:
    """The yardstick of the test above, measured against the files themselves."""
    entries = [stock[name, 1] for name in NAMES]
    build(entries, {}, tmp_path, tmp_path / "catalog.duckdb")
    found = content(tmp_path / "catalog.duckdb")
    for name in TABLES.keys() - {TOKENS.name, RUNS.name}:
        files = [entry.tables[name].path for entry in entries if name in entry.tables]
        frame = pl.concat(pl.read_parquet(file).select(TABLES[name].names) for file in files)
        if name in SHARED:
            frame = frame.unique(SHARED[name])
        assert found[name].height == frame.height > 0
        assert_frame_equal(found[name], frame, check_row_order=False, check_dtypes=False)
    assert sorted(found["runs"]["run"]) == sorted(RUN_NAMES)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A copy of the golden lake, beside it `catalog.duckdb` of all entries but the newest run.

    Then the files of those entries are overwritten, all but those of the shared tables: their sizes
    stay, which is all that may be looked at.
    """
    lake = tmp_path / "lake"
    shutil.copytree(LAKE, lake)
    older, _ = without_newest(lake)
    build(older, {}, lake, tmp_path / "catalog.duckdb")
    overwrite(lake, older, TABLES.keys() - SHARED.keys())
    return lake


def without_newest(lake: Path) -> tuple[list[Entry], Entry]:
    entries = read_entries(lake)
    newest = next(entry for entry in entries if entry.entry.startswith("exgrpo-s1"))
    return [entry for entry in entries if entry is not newest], newest


def overwrite(lake: Path, entries: Iterable[Entry], tables: Collection[str]) -> None:
    for entry in entries:
        for table in entry.tables.keys() & tables:
            file = entry.tables[table]
            (lake / file.path).write_bytes(bytes(file.bytes))


def test_one_more_run_leaves_all_files_of_the_others_unread(
    lake: Path, tmp_path: Path, golden_path: Path
) -> None:
    path = tmp_path / "catalog.duckdb"
    overwrite(lake, without_newest(lake)[0], SHARED)
    build(read_entries(lake), {}, lake, path)
    assert_same(path, golden_path)
    path.unlink()
    with pytest.raises(UserError, match="corrupt"):  # so they were unreadable
        build(read_entries(lake), {}, lake, path)


def test_a_run_less_reads_no_more_than_the_shared_tables(lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "catalog.duckdb"
    older, _ = without_newest(lake)
    kept = [entry for entry in older if not entry.entry.startswith("on_policy-s0")]
    build(kept, {}, lake, path)
    names = {entry.entry for entry in kept}
    whole = [entry for entry in read_entries(LAKE) if entry.entry in names]
    build(whole, {}, LAKE, tmp_path / "other.duckdb")
    assert_same(path, tmp_path / "other.duckdb")


def test_the_files_of_the_new_run_are_checked(lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "catalog.duckdb"
    before = content(path)
    _, newest = without_newest(lake)
    overwrite(lake, [newest], {"steps"})
    with pytest.raises(UserError, match="corrupt") as caught:
        build(read_entries(lake), {}, lake, path)
    assert str(lake / newest.tables["steps"].path) in str(caught.value)
    for name, frame in content(path).items():
        assert_frame_equal(frame, before[name])


def test_a_catalog_that_would_be_mostly_holes_is_built_anew(lake: Path, tmp_path: Path) -> None:
    older, _ = without_newest(lake)
    with pytest.raises(UserError, match="corrupt"):  # so the files were looked at
        build(older[:3], {}, lake, tmp_path / "catalog.duckdb")


def test_a_catalog_of_another_version_is_built_anew(
    stock: dict[tuple[str, int], Entry], tmp_path: Path
) -> None:
    entries, path = [stock[name, 0] for name in NAMES], tmp_path / "catalog.duckdb"
    build(entries, {}, tmp_path, path)
    with duckdb.connect(path) as connection:
        connection.execute("ALTER TABLE steps DROP COLUMN loss")
    build(entries, {}, tmp_path, path)
    build(entries, {}, tmp_path, tmp_path / "other.duckdb")
    assert_same(path, tmp_path / "other.duckdb")
