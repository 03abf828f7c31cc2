"""The lake holds what the logs say: every live row once, nothing dead, nothing half-written."""

import json
import re
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lake_fixture import STEPS, STUDY, DemoResults, finish, make_results

from analysis import compaction, lake
from analysis.catalog import open_catalog
from analysis.compaction import compact
from analysis.errors import UserError as AnalysisError
from analysis.queries import ask
from exgrpo.errors import UserError
from exgrpo.records import FROM_THE_START, Recorder
from exgrpo.studies import Study
from exgrpo.tables import EVALUATIONS, QUESTIONS, TABLES, TRAJECTORIES
from exgrpo.tables import STEPS as STEPS_TABLE
from pipeline.catalog import build_catalog
from pipeline.lake import add_study_entry, renew


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    return make_results(tmp_path_factory.mktemp("demo"))


@pytest.fixture
def own(demo: DemoResults, tmp_path: Path) -> DemoResults:
    """A copy of the demo results that a test may damage."""
    shutil.copytree(demo.results, tmp_path / "results")
    return DemoResults(tmp_path / "results", demo.study, demo.rows)


def in_lake(demo: DemoResults, table: str) -> pl.DataFrame:
    """Every row of a table in the lake, in the order of its sorted files."""
    folder = demo.results / "lake"
    files = [entry.tables[table] for entry in lake.read_entries(folder) if table in entry.tables]
    return lake.scan([folder / file.path for file in files], TABLES[table]).collect()


def expected(table: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLES[table].polars_schema)


def first_run(demo: DemoResults) -> str:
    return next(iter(demo.study.runs))


def run_log(demo: DemoResults, run: str) -> Path:
    return demo.results / STUDY / "runs" / run / "log"


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "table", ["trajectories", "tokens", "candidates", "experience", "steps", "evaluations"]
)
def test_every_live_row_is_there_once_and_sorted(demo: DemoResults, table: str) -> None:
    found = in_lake(demo, table)
    order = list(TABLES[table].order)
    assert found.equals(expected(table, demo.rows[table]).sort(order, maintain_order=True))


@pytest.mark.parametrize("letters", [80, 1600], ids=["short texts", "long texts"])
def test_files_are_sorted_zstd_with_row_groups_by_size(tmp_path: Path, letters: int) -> None:
    part = tmp_path / "part.parquet"
    texts = [f"{step:08d}" * (letters // 8) for step in range(20000, 0, -1)]
    rows = [
        {"run": "r", "step": 20000 - i, "group": 0, "slot": 0, "response": text}
        for i, text in enumerate(texts)
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=TRAJECTORIES.arrow_schema), part)
    entry = compact("r", STUDY, None, {"trajectories": [part]}, tmp_path / "lake")
    written = tmp_path / "lake" / entry.tables["trajectories"].path
    footer = pq.read_metadata(written)
    groups = [footer.row_group(index) for index in range(footer.num_row_groups)]
    assert pl.read_parquet(written)["step"].to_list() == list(range(1, 20001))
    assert max(group.total_byte_size for group in groups) <= 2 * compaction.GROUP_BYTES
    assert (len(groups) > 1) == (letters == 1600)
    assert groups[0].column(0).compression == "ZSTD"


def test_dead_attempts_are_left_out_and_said(
    own: DemoResults, capsys: pytest.CaptureFixture[str]
) -> None:
    run = list(own.study.runs)[1]
    add_study_entry(own.study, run, own.results)
    assert f"{run}: left out 1 parts (2 rows)" in capsys.readouterr().out
    steps = in_lake(own, "steps").filter(pl.col("run") == run)
    assert steps["step"].to_list() == list(range(1, STEPS + 1))
    assert steps["reward"].min() >= 0  # the dead rows said -1


@settings(max_examples=15, deadline=None)
@given(
    steps=st.integers(1, 9),
    every=st.integers(1, 4),
    kills=st.lists(st.tuples(st.integers(0, 9), st.booleans()), max_size=5),
)
def test_an_interrupted_run_leaves_the_rows_of_an_unbroken_one(
    tmp_path_factory: pytest.TempPathFactory,
    steps: int,
    every: int,
    kills: list[tuple[int, bool]],
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    for name, deaths in (("unbroken", []), ("broken", kills)):
        checkpoint = 0
        for death in [*deaths, None]:
            checkpoint = _attempt(folder / name, checkpoint, steps, every, death)
    unbroken, broken = (_compacted(folder / name) for name in ("unbroken", "broken"))
    for table in ("steps", "evaluations"):
        assert broken[table].equals(unbroken[table])


def _attempt(
    log: Path, checkpoint: int, steps: int, every: int, death: tuple[int, bool] | None
) -> int:
    """Log as the trainer does, until `death` (step, after the flush); the checkpoint left."""
    recorder = Recorder(log, resumed_from=checkpoint or FROM_THE_START)
    if checkpoint == 0:
        recorder.add("evaluations", [_sample(0)])
        recorder.flush(0, 0)
    flushed = checkpoint
    for step in range(checkpoint + 1, steps + 1):
        recorder.add("steps", [{"run": "r", "step": step, "reward": step / 3}])
        if death == (step, False):
            return checkpoint
        if step % every == 0 or step == steps:
            recorder.add("evaluations", [_sample(step)])
            recorder.flush(flushed + 1, step)
            flushed = step
            if death == (step, True):  # logged, but killed before the checkpoint
                return checkpoint
            checkpoint = step
    return checkpoint


def _sample(step: int) -> dict[str, Any]:
    return {"run": "r", "step": step, "benchmark": "validation", "sample": 0, "correct": True}


def _compacted(log: Path) -> dict[str, pl.DataFrame]:
    from pipeline.lake import _compact

    log.rename(log.parent / "log")
    entry = _compact("r", STUDY, [log.parent], None, log.parent)
    shutil.rmtree(log.parent / "log")
    return {
        name: pl.read_parquet(log.parent / "lake" / file.path)
        for name, file in entry.tables.items()
    }


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [Path.unlink, _cut, _flip], ids=["missing", "torn", "corrupt"])
def test_a_damaged_part_is_named_and_nothing_counts(own: DemoResults, damage: Any) -> None:
    run = first_run(own)
    part = next((run_log(own, run) / "trajectories").glob("*.parquet"))
    damage(part)
    with pytest.raises(UserError, match="train it again") as error:
        add_study_entry(own.study, run, own.results)
    assert str(part) in str(error.value)


def test_files_that_the_manifest_does_not_list_are_left_out_and_said(
    own: DemoResults, capsys: pytest.CaptureFixture[str]
) -> None:
    run = first_run(own)
    part = next((run_log(own, run) / "steps").glob("*.parquet"))
    torn = part.with_name("torn.parquet")
    torn.write_bytes(part.read_bytes()[:100])
    add_study_entry(own.study, run, own.results)
    said = capsys.readouterr().out
    assert "left out 1 files" in said and f"steps/{torn.name}" in said
    steps = in_lake(own, "steps").filter(pl.col("run") == run)
    assert steps["step"].to_list() == list(range(1, STEPS + 1))


def test_what_cannot_be_made_leaves_the_older_entry_as_it_is(own: DemoResults) -> None:
    run = first_run(own)
    before = contents(own.results / "lake")
    part = next((run_log(own, run) / "steps").glob("*.parquet"))
    with pytest.raises(AnalysisError, match="no column 'surprise'"):
        compact(run, STUDY, None, {"steps": [_with_column(part)]}, own.results / "lake")
    assert contents(own.results / "lake") == before


def test_what_a_killed_process_left_is_removed(own: DemoResults) -> None:
    run = first_run(own)
    before = contents(own.results / "lake")
    left = own.results / "lake" / f".{run}.making"
    left.mkdir()
    (left / "steps.parquet").write_bytes(b"torn")
    add_study_entry(own.study, run, own.results)
    after = contents(own.results / "lake")
    assert after.keys() == before.keys()


def test_tables_that_an_entry_no_longer_has_are_removed(own: DemoResults) -> None:
    run = first_run(own)
    parts = list((run_log(own, run) / "steps").glob("*.parquet"))
    compact(run, STUDY, None, {"steps": parts}, own.results / "lake")
    left = [path.parent.name for path in (own.results / "lake").glob(f"*/{run}.parquet")]
    assert left == ["steps"]


def _with_column(part: Path) -> Path:
    path = part.with_name("foreign.parquet")
    pl.read_parquet(part).with_columns(surprise=1).write_parquet(path)
    return path


def test_another_type_is_an_error_that_names_file_and_column(tmp_path: Path) -> None:
    part = tmp_path / "part.parquet"
    pl.DataFrame({"question": ["q"], "split": ["train"], "gold": [16]}).write_parquet(part)
    with pytest.raises(AnalysisError, match="column 'gold' is Int64") as error:
        compact("q", STUDY, None, {"questions": [part]}, tmp_path / "lake")
    assert str(part) in str(error.value)


def test_a_file_that_is_no_parquet_is_an_error(tmp_path: Path) -> None:
    part = tmp_path / "part.parquet"
    part.write_text("not at all")
    with pytest.raises(AnalysisError, match="no readable Parquet file") as error:
        compact("q", STUDY, None, {"questions": [part]}, tmp_path / "lake")
    assert str(part) in str(error.value)


def test_a_column_only_in_some_parts_is_null_elsewhere(tmp_path: Path) -> None:  # o37, o39
    parts = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    key = {"run": "r", "benchmark": "b", "question": "q"}
    for path, start, extra in ((parts[0], 0, {}), (parts[1], 200, {"extracted": "7"})):
        pl.DataFrame(
            [{**key, "step": 0, "sample": start + i, **extra} for i in range(200)]
        ).write_parquet(path)
    entry = compact("r", STUDY, None, {"evaluations": parts}, tmp_path / "lake")
    written = tmp_path / "lake" / entry.tables["evaluations"].path
    frame = lake.scan([written], EVALUATIONS).collect()
    assert frame.schema == EVALUATIONS.polars_schema
    assert frame["extracted"].to_list() == [None] * 200 + ["7"] * 200


def test_text_that_looks_like_a_number_stays_text(tmp_path: Path) -> None:  # o41
    recorder = Recorder(tmp_path / "log")
    golds = ["016", "30", "9223372036854775808"]
    rows = [{"question": f"q{i}", "split": "s", "gold": gold} for i, gold in enumerate(golds)]
    recorder.add("questions", rows)
    recorder.flush(0, 0)
    parts = list((tmp_path / "log" / "questions").glob("*.parquet"))
    entry = compact("q", STUDY, None, {"questions": parts}, tmp_path / "lake")
    found = lake.scan([tmp_path / "lake" / entry.tables["questions"].path], QUESTIONS).collect()
    assert found["gold"].to_list() == golds


@pytest.mark.parametrize("row", [{"seed": 2**63}, {"steps": "six"}, {"colour": "red"}])
def test_a_run_row_that_does_not_fit_is_an_error(tmp_path: Path, row: dict[str, Any]) -> None:
    with pytest.raises(AnalysisError, match=r"run\.json") as error:  # o43: never cut short
        compact("r", STUDY, row, {}, tmp_path)
    assert next(iter(row)) in str(error.value)


def test_a_row_twice_is_an_error(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "log")
    recorder.add("steps", [{"run": "r", "step": 1}, {"run": "r", "step": 1}])
    recorder.flush(1, 1)
    parts = list((tmp_path / "log" / "steps").glob("*.parquet"))
    with pytest.raises(AnalysisError, match=r"1 rows occur twice, for example \{'run': 'r'"):
        compact("r", STUDY, None, {"steps": parts}, tmp_path / "lake")


def test_names_with_brackets_and_quotes_are_no_patterns(tmp_path: Path) -> None:  # o49
    part = tmp_path / "run[1]'s*.parquet"
    decoy = tmp_path / "run1's.parquet"
    for path, step in ((part, 1), (decoy, 2)):
        pl.DataFrame({"run": ["r"], "step": [step]}).write_parquet(path)
    entry = compact("r[1]'s*", STUDY, None, {"steps": [part]}, tmp_path / "lake")
    found = lake.scan([tmp_path / "lake" / entry.tables["steps"].path], STEPS_TABLE).collect()
    assert found["step"].to_list() == [1]


def test_results_in_a_folder_of_an_odd_name(demo: DemoResults, tmp_path: Path) -> None:  # o49
    results = tmp_path / "od[d] 'na\"me*é"
    shutil.copytree(demo.results, results)
    run = first_run(demo)
    assert add_study_entry(demo.study, run, results) == lake.read_entry(demo.results / "lake", run)


@pytest.mark.parametrize("text", ["{", "[]", None])
def test_a_broken_row_of_a_run_is_named(own: DemoResults, text: str | None) -> None:
    run = first_run(own)
    path = run_log(own, run).parent / "run.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(UserError, match=re.escape(f"{path}: cannot be read: ")):
        add_study_entry(own.study, run, own.results)


def test_a_stage_that_is_not_done_does_not_count(own: DemoResults) -> None:
    run = first_run(own)
    marker = own.results / STUDY / "runs" / run / "done.json"
    marker.unlink()
    with pytest.raises(UserError, match="not done") as error:
        add_study_entry(own.study, run, own.results)
    assert str(marker) in str(error.value)


def test_an_empty_log_is_an_error(demo: DemoResults, tmp_path: Path) -> None:
    folder = tmp_path / STUDY / "questions"
    folder.mkdir(parents=True)
    finish(folder)
    with pytest.raises(UserError, match="lists no part"):
        add_study_entry(demo.study, f"questions-{STUDY}", tmp_path)


def test_an_unknown_entry_names_the_known_ones(demo: DemoResults) -> None:
    with pytest.raises(UserError, match="has no entry 'nobody'") as error:
        add_study_entry(demo.study, "nobody", demo.results)
    assert demo.study.base_run in str(error.value)


def test_a_broken_entry_file_is_named(own: DemoResults) -> None:
    path = own.results / "lake" / "entries" / f"{first_run(own)}.json"
    path.write_text(json.dumps({"entry": "x"}))
    with pytest.raises(AnalysisError, match="no valid entry") as error:
        lake.read_entries(own.results / "lake")
    assert str(path) in str(error.value)


def test_an_entry_of_another_version_is_made_again_from_its_log(own: DemoResults) -> None:
    folder = own.results / "lake" / "entries"
    for path in folder.glob("*.json"):  # as version 1 wrote them
        value = json.loads(path.read_text())
        del value["layout"]
        for file in value["tables"].values():
            del file["bytes"]
        path.write_text(json.dumps(value))
    assert {entry.layout for entry in lake.read_entries(own.results / "lake")} == {1}
    build_catalog(own.results)
    with open_catalog(own.catalog) as connection:
        left_out = ask(connection, "SELECT left_out FROM catalog_info").frame["left_out"]
    assert left_out.str.contains("another version").all()
    renew(own.results)
    assert not list(folder.glob("*.json"))


def test_a_full_disk_is_an_error_and_changes_nothing(own: DemoResults) -> None:
    before = contents(own.results / "lake")
    with _largest_file(1000), pytest.raises(AnalysisError, match="Free disk space"):
        add_study_entry(own.study, first_run(own), own.results)
    assert contents(own.results / "lake") == before


@contextmanager
def _largest_file(size: int) -> Iterator[None]:
    """Writing beyond `size` bytes fails, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_the_fixture_is_a_real_study(demo: DemoResults) -> None:
    text = (demo.results / STUDY / "study.json").read_text()
    assert Study.model_validate_json(text) == demo.study
