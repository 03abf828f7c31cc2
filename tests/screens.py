"""Screens of the dashboard for tests: opened at an address, read as text, over an import."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from streamlit.testing.v1 import AppTest

from analysis.catalog_build import build
from analysis.compaction import compact
from exgrpo.tables import TRAJECTORIES

ROOT = Path(__file__).resolve().parents[1]
SCREENS = ("overview", "trajectories", "sql")


def open_screen(name: str, **query: str | list[str]) -> AppTest:
    """The screen at an address, after its first run; fails on an exception in it."""
    test = AppTest.from_file(str(ROOT / "app" / "main.py"), default_timeout=30)
    test.run()
    test.switch_page(f"screens/{name}.py")
    for key, value in query.items():
        test.query_params[key] = value
    test.run()
    assert not test.exception, [item.message for item in test.exception]
    return test


def texts(test: AppTest) -> str:
    """All that the screen says outside of tables."""
    kinds = (test.markdown, test.caption, test.info, test.warning, test.error, test.code)
    return "\n".join(str(item.value) for kind in kinds for item in kind)


def write_import(results: Path, responses: list[str], successes: list[int | None]) -> None:
    """A catalog with one import: a response and its group's k of 4 in each row."""
    rows = len(responses)
    columns = {
        "trajectory": [f"long:1:{i}:0" for i in range(rows)],
        "run": ["long"] * rows,
        "step": [1] * rows,
        "group": list(range(rows)),
        "slot": [0] * rows,
        "replayed": [False] * rows,
        "response": responses,
        "group_successes": successes,
        "group_size": [4] * rows,
    }
    nothing = TRAJECTORIES.arrow_schema.empty_table()
    table = pa.concat_tables([nothing, pa.table(columns)], promote_options="default")
    part = results / "part.parquet"
    pq.write_table(table, part)
    row = {"run": "long", "study": "imports", "arm": "long", "status": "imported"}
    entry = compact("long", "imports", row, {TRAJECTORIES.name: [part]}, results / "lake")
    build([entry], {}, results / "lake", results / "workbench.duckdb")
