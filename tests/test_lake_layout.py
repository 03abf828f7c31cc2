"""The lake as it is: other tools read it as docs/lake.md says, whose own code is run here."""

import json
import re
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest
from lake_fixture import DemoResults

from analysis.compaction import compact
from exgrpo.tables import DERIVED, TABLES, TRAJECTORIES

DOCS = Path(__file__).resolve().parents[1] / "docs" / "lake.md"


def code(language: str) -> str:
    """The first block of code in that language."""
    found = re.search(rf"^```{language}\n(.+?)^```", DOCS.read_text(), re.M | re.S)
    assert found, language
    return found[1]


@pytest.mark.parametrize("table", TABLES)
def test_polars_reads_declared_types_in_order_lazily(demo: DemoResults, table: str) -> None:
    files = sorted((demo.results / "lake" / table).glob("*.parquet"))
    logged = table in demo.rows.keys() | {derived.name for derived in DERIVED}
    assert bool(files) == (logged and table != "runs")  # runs are in the entries
    for file in files:
        lazy = pl.scan_parquet(file)
        assert lazy.collect_schema() == TABLES[table].polars_schema
        order = list(TABLES[table].order)
        keys = lazy.select(order).collect()
        assert keys.equals(keys.sort(order, nulls_last=True))
        column = pq.read_metadata(file).row_group(0).column(0)
        assert column.compression == "ZSTD"
        assert int(pq.read_metadata(file).metadata[b"schema_version"]) > 0


def test_an_entry_has_the_fields_of_the_docs_and_true_rows(demo: DemoResults) -> None:
    entries = list((demo.results / "lake" / "entries").glob("*.json"))
    assert len(entries) == len(demo.study.runs) + 2
    for path in entries:
        entry = json.loads(path.read_text())
        assert entry.keys() == {"entry", "study", "layout", "run", "tables"}
        assert all(f"`{field}`" in DOCS.read_text() for field in entry)
        for file in entry["tables"].values():
            there = demo.results / "lake" / file["path"]
            assert pl.scan_parquet(there).select(pl.len()).collect().item() == file["rows"]
            assert there.stat().st_size == file["bytes"]


def test_the_polars_code_of_the_docs_runs(
    demo: DemoResults, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(demo.results.parent)
    source = code("python").replace("results/lake", f"{demo.results.name}/lake")
    exec(source, names := {})
    assert "run" in capsys.readouterr().out
    frame = names["late"].collect()
    expected = [row for row in demo.rows["trajectories"] if row["step"] >= 4]
    assert frame.height == len(expected) > 0
    assert sum(row["correct"] or 0 for row in expected) == frame["correct"].sum()


def test_the_duckdb_code_of_the_docs_runs(
    demo: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(demo.results.parent)
    source = code("sql").replace("results/lake", f"{demo.results.name}/lake")
    rewards: dict[str, list[float]] = {}
    for row in demo.rows["steps"]:
        if row["step"] >= 4:
            rewards.setdefault(row["run"], []).append(row["reward"])
    expected = [(run, sum(of) / len(of)) for run, of in sorted(rewards.items())]
    with duckdb.connect() as connection:
        found = connection.execute(source).fetchall()
    assert [run for run, _ in found] == [run for run, _ in expected] != []
    assert [value for _, value in found] == pytest.approx([value for _, value in expected])


def test_a_filter_on_step_needs_few_row_groups(tmp_path: Path) -> None:
    rows = 60_000
    frame = pl.DataFrame({"step": [row // 100 for row in range(rows)]}).with_columns(
        trajectory=pl.format("r:{}:{}", "step", pl.int_range(rows)),
        run=pl.lit("r"),
        group=pl.int_range(rows) % 100,
        slot=0,
        response=pl.int_range(rows).cast(pl.String).str.pad_start(1500, "x"),
    )
    frame = frame.cast({name: TRAJECTORIES.polars_schema[name] for name in frame.columns})
    frame.write_parquet(part := tmp_path / "part.parquet")
    compact("r", "s", None, {"trajectories": [part]}, tmp_path / "lake")
    written = tmp_path / "lake" / "trajectories" / "r.parquet"
    meta = pq.read_metadata(written)
    index = meta.schema.to_arrow_schema().get_field_index("step")
    bounds = [meta.row_group(i).column(index).statistics for i in range(meta.num_row_groups)]
    wanted = [bound for bound in bounds if bound.min <= 300 <= bound.max]
    assert len(wanted) <= 2 < len(bounds)
    found = pl.scan_parquet(written).filter(pl.col("step") == 300).collect()
    assert found.height == 100
