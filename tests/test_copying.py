"""A question as text for elsewhere is run there: same rows, whatever the values hold."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults
from polars.testing import assert_frame_equal

from analysis.catalog import open_catalog
from analysis.copying import python, shell, with_values, written
from analysis.errors import UserError
from analysis.queries import answer, ask, bind, named_queries

HOSTILE = (
    "x' OR '1'='1",
    "'; DROP TABLE runs; --",
    "$study $$ ${HOME} `id` $(id)",
    'a"b\\',
    "two\nlines\r\n",
    "a\x00b\x00",
    "",
    "ünï😀",
    "%s {0}",
    "/* -- */",
)


@pytest.mark.parametrize(
    "value",
    [*HOSTILE, None, True, False, 0, -5, 2**62, 0.1, -1e300, 1e-5, [], ["a", "b'c"], list(HOSTILE)],
)
def test_a_literal_means_the_value(value: Any) -> None:
    sql = with_values("-- $x in the header\nSELECT '$x' AS a, \"$x\", $x AS b -- $x", {"x": value})
    assert sql.startswith("SELECT '$x' AS a, \"$x\", ") and sql.endswith(" AS b -- $x")
    with duckdb.connect() as connection:
        found = connection.sql(f"SELECT {written(value)}").fetchall()[0][0]
    assert found == value and type(found) is type(value)


def test_every_named_query_says_the_same_with_literals(demo: DemoResults) -> None:
    known = {"study": STUDY, "benchmark": "validation"}
    numbers = {"integer": 1, "double": 0.5, "boolean": True, "text": "x'y", "text[]": ["x'y"]}
    with open_catalog(demo.catalog) as connection:
        for query in named_queries().values():
            given = {
                name: known.get(name, numbers[parameter.type])
                for name, parameter in query.parameters.items()
                if parameter.required or name == "study"
            }
            sql = with_values(query.sql, bind(query.name, given)[1])
            try:
                rows = answer(connection, query.name, **given)
            except UserError:  # the query refuses a benchmark or an arm that has no evaluations
                with pytest.raises(duckdb.Error, match="has no evaluations here"):
                    connection.sql(sql).pl()
                continue
            assert_frame_equal(connection.sql(sql).pl(), rows, check_row_order=False)
            ask(connection, sql)  # the editor takes it


def test_python_runs_elsewhere(demo: DemoResults, tmp_path: Path) -> None:
    catalog = tmp_path / 'it\'s "here" $HOME' / "workbench.duckdb"
    catalog.parent.mkdir()
    catalog.write_bytes(demo.catalog.read_bytes())
    sql = 'SELECT arm,\n  \'\\\' || $word AS word, count(*) AS n -- """\nFROM runs GROUP BY ALL'
    for values, text in (
        ({"word": HOSTILE[2] + HOSTILE[4]}, sql),
        (None, sql.replace("$word", "'x'")),
    ):
        script = python(catalog, text, values) + f"frame.write_parquet({str(tmp_path / 'a')!r})\n"
        subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)
        with open_catalog(demo.catalog) as connection:
            expected = connection.sql(text, params=values).pl()
        assert_frame_equal(pl.read_parquet(tmp_path / "a"), expected, check_row_order=False)


@pytest.mark.parametrize("text", HOSTILE[:5] + HOSTILE[6:])
def test_a_shell_passes_the_sql_on_letter_for_letter(text: str, tmp_path: Path) -> None:
    """With a stand-in for the `duckdb` command that writes down its arguments."""
    stand_in = tmp_path / "duckdb"
    stand_in.write_text(
        f"#!{sys.executable}\nimport sys, json\njson.dump(sys.argv[1:], open('seen', 'w'))\n"
    )
    stand_in.chmod(0o755)
    command = shell(Path("/a b/it's"), f"SELECT {written(text)}")
    assert shlex.split(command)[0] == "duckdb"
    subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env={"PATH": f"{tmp_path}:/bin"}, check=True
    )
    seen = json.loads((tmp_path / "seen").read_text())
    assert seen == ["-readonly", "/a b/it's", "-c", f"SELECT {written(text)}"]
