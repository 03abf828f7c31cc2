"""Named queries: their headers, their parameters, and `exgrpo sql --name` and `--list`."""

import csv
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from lake_fixture import STUDY, DemoResults
from screens import open_screen, texts

from analysis import queries
from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.named import Parameter, read_query
from analysis.queries import answer, ask_named, named_queries
from pipeline.named import WIDTH, check_request, explain, read_parameters
from pipeline.sql import Output, print_answer, print_named

Captured = pytest.CaptureFixture[str]

ECHO = """\
-- purpose: What comes out of what goes in?
-- grain: a number up to `rows`
-- param word text = null: a word
-- param words text[] = a, b: words
-- param rows integer: rows
-- param factor double = 2: times this
-- param flag boolean = true: as it is
-- column i: number, from 0 [row]
-- column word: a word
-- column words: words
-- column factor: factor
-- column flag: flag
-- column twice: a structure
select range as i, $word as word, $words as words, $factor as factor, $flag as flag,
    {'x': range * 2} as twice
from range($rows)
"""
SLOW = """\
-- purpose: How long?
-- grain: all
-- param rows integer = 10000000000: rows
-- column n: rows
select count(*) as n from range($rows) a where a.range % 7 = 3
"""


@pytest.fixture
def own_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of named queries in the place of `analysis/sql/`."""
    folder = tmp_path / "sql"
    folder.mkdir()
    (folder / "echo.sql").write_text(ECHO)
    (folder / "slow.sql").write_text(SLOW)
    monkeypatch.setattr(queries, "FOLDER", folder)
    named_queries.cache_clear()
    yield folder
    named_queries.cache_clear()


def command_line(demo: DemoResults, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "pipeline.cli", "sql", "--results", str(demo.results)]
    root = Path(__file__).resolve().parents[1]
    return subprocess.run([*command, *arguments], capture_output=True, cwd=root)


def test_a_header_is_read(own_queries: Path) -> None:
    query = read_query(own_queries / "echo.sql")
    assert (query.name, query.purpose) == ("echo", "What comes out of what goes in?")
    assert list(query.parameters.values()) == [
        Parameter("word", "text", None, False, "a word"),
        Parameter("words", "text[]", ["a", "b"], False, "words"),
        Parameter("rows", "integer", None, True, "rows"),
        Parameter("factor", "double", 2.0, False, "times this"),
        Parameter("flag", "boolean", True, False, "as it is"),
    ]
    assert list(query.columns) == ["i", "word", "words", "factor", "flag", "twice"]
    assert query.columns["i"] == "number, from 0 [row]"


def test_a_value_below_the_least_and_unknown_runs_are_errors(demo: DemoResults) -> None:
    with open_catalog(demo.catalog) as connection:
        for given, message in (
            ({"window": 0}, "parameter 'window': the value 0 is no integer: expected at least 1"),
            ({"window": "-5"}, "the value '-5' is no integer: expected at least 1"),
            ({"study": "dem0"}, "the catalog has no study 'dem0'. Did you mean 'demo'"),
            ({"run": ["nobody"]}, "the catalog has no run 'nobody'. Known: "),
        ):
            with pytest.raises(UserError, match=message):
                ask_named(connection, "snowball", given)
        assert ask_named(connection, "snowball", {"study": "demo", "window": "1"}).frame.height


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("-- grain: a number up to `rows`\n", "", "incomplete header"),
        ("-- param rows integer: rows\n", "", r"uses the parameters .*'rows'.*declares"),
        ("-- param rows integer:", "-- param rows:", "parameter 'rows': write `name type`"),
        ("rows integer:", "rows number:", "types are text, text\\[\\], integer, double, boolean"),
        ("= 2:", "= two:", "parameter 'factor': default 'two': expected a finite number"),
        ("-- column i:", "-- colunm i:", r"line 8: '-- colunm i: .*' is no line of a header"),
        ("-- column flag:", "-- column i:", "given twice"),
    ],
)
def test_a_wrong_header_is_an_error(own_queries: Path, old: str, new: str, message: str) -> None:
    path = own_queries / "echo.sql"
    assert path.read_text().count(old) == 1
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(UserError, match=message) as error:
        named_queries()
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"rows": 1}, (None, ["a", "b"], 2.0, True)),
        ({"rows": "1", "word": "s"}, ("s", ["a", "b"], 2.0, True)),
        ({"rows": " 1 ", "words": "c, d,"}, (None, ["c", "d"], 2.0, True)),
        ({"rows": 1, "words": ["c,d"]}, (None, ["c,d"], 2.0, True)),
        ({"rows": 1, "words": [], "flag": "False"}, (None, [], 2.0, False)),
        ({"rows": 1, "words": None, "flag": None}, (None, None, 2.0, None)),
        ({"rows": 1, "factor": "1e3", "flag": False}, (None, ["a", "b"], 1000.0, False)),
        ({"rows": 1, "word": ""}, ("", ["a", "b"], 2.0, True)),
    ],
)
def test_parameters_have_defaults_and_are_read_from_text(
    own_queries: Path,
    connection: duckdb.DuckDBPyConnection,
    given: dict[str, Any],
    found: tuple[object, ...],
) -> None:
    frame = answer(connection, "echo", **given)
    assert frame.select("word", "words", "factor", "flag").rows() == [found]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "query 'echo' needs the parameter 'rows': rows"),
        ({"rows": "many"}, "query 'echo': parameter 'rows': the value 'many' is no integer"),
        ({"rows": "1.5"}, "the value '1.5' is no integer"),
        ({"rows": True}, "the value True is no integer"),
        ({"rows": 2**63}, "at most 64 bits"),
        ({"rows": 1, "factor": "nan"}, "the value 'nan' is no double"),
        ({"rows": 1, "flag": "yes"}, "the value 'yes' is no boolean: expected true or false"),
        ({"rows": 1, "flag": [True]}, r"the value \[True\] is no boolean"),
        ({"rows": 1, "word": 7}, "the value 7 is no text"),
        ({"rows": 1, "words": [7]}, r"the value \[7\] is no text\[\]"),
        ({"rows": 1, "wrods": "a"}, "no parameter 'wrods' .value 'a'.. Did you mean 'words'"),
    ],
)
def test_wrong_values_are_named(
    own_queries: Path,
    connection: duckdb.DuckDBPyConnection,
    given: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises(UserError, match=message):
        answer(connection, "echo", **given)


def test_the_limits_hold_for_a_named_query(own_queries: Path, own: DemoResults) -> None:  # o51
    with open_catalog(own.catalog) as connection:
        found = ask_named(connection, "echo", {"rows": 10**12}, 10)
        assert found.frame["i"].to_list() == list(range(10))
        assert found.truncated
        assert not ask_named(connection, "echo", {"rows": 10}, 10).truncated
    with pytest.raises(UserError, match="query 'slow': stopped at the time limit"):
        print_named(own.results, "slow", {}, Output(seconds=0.3))


def test_the_time_limit_of_a_typed_query_can_be_set(own: DemoResults) -> None:
    slow = "SELECT count(*) FROM range(100000000000) a, range(1000000) b"
    with pytest.raises(UserError, match="time limit"):
        print_answer(own.results, slow, Output(seconds=0.3))


def test_a_cut_answer_is_told(own_queries: Path, demo: DemoResults, capsys: Captured) -> None:
    print_named(demo.results, "echo", {"rows": 5}, Output("csv", 3))
    captured = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(captured.out)))
    assert [row["i"] for row in rows] == ["0", "1", "2"]
    assert json.loads(rows[2]["twice"]) == {"x": 4}
    assert captured.err == "only the first 3 rows; `exgrpo sql --limit` raises it\n"


def test_the_command_runs_a_named_query_of_the_runs_named(demo: DemoResults) -> None:
    run, other = [row["run"] for row in demo.rows["runs"] if row["arm"] == "exgrpo"][:2]
    arguments = ["--name", "buffer_dynamics", "--study", STUDY, "--run", run, "--run", other]
    done = command_line(demo, *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    arms = {(row["arm"], row["seed"]) for row in demo.rows["runs"] if row["run"] in (run, other)}
    steps = [row for row in demo.rows["steps"] if row["run"] in (run, other)]
    assert len(found) == len(steps) > 0
    assert {(row["arm"], row["seed"]) for row in found} == arms


def test_the_command_writes_parquet_with_lists_and_structures(
    demo: DemoResults, tmp_path: Path
) -> None:
    sql = "-- by run\nSELECT run, step, bucket_sizes, {'r': reward} AS s FROM steps ORDER BY ALL"
    done = command_line(demo, "--format", "parquet", "--", sql)
    assert (done.returncode, done.stderr) == (0, b"")
    (tmp_path / "answer.parquet").write_bytes(done.stdout)
    found = pl.read_parquet(tmp_path / "answer.parquet").to_dicts()
    expected = sorted(demo.rows["steps"], key=lambda row: (row["run"], row["step"]))
    assert found == [
        {name: row[name] for name in ("run", "step", "bucket_sizes")} | {"s": {"r": row["reward"]}}
        for row in expected
    ]


def test_parquet_is_refused_on_a_terminal(
    demo: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with pytest.raises(UserError, match=r"> answer\.parquet"):
        print_answer(demo.results, "SELECT 1", Output("parquet"))
    assert capsys.readouterr().out == ""


def test_a_named_query_of_this_moment(demo: DemoResults, capsys: Captured) -> None:
    print_named(demo.results, "buckets", {"study": STUDY}, Output("csv"), live=True)
    live = capsys.readouterr()
    print_named(demo.results, "buckets", {"study": STUDY}, Output("csv"))
    assert live.out == capsys.readouterr().out
    assert live.err.startswith("live: ")


def test_all_queries_are_listed_in_80_columns() -> None:
    listed = explain()
    for query in named_queries().values():
        assert f"\n{query.name}\n" in f"\n{listed}"
        assert query.purpose in " ".join(listed.split())
        assert all(len(line) <= WIDTH for line in explain(query.name).splitlines())
    assert all(len(line) <= WIDTH for line in listed.splitlines())


def test_one_query_is_explained(own_queries: Path) -> None:
    lines = explain("echo").splitlines()
    assert lines[:5] == [
        "echo",
        "    What comes out of what goes in?",
        "",
        "One row is",
        "    a number up to `rows`",
    ]
    assert "  words text[] = a,b" in lines
    assert "  rows integer, required" in lines
    assert "  flag boolean = true" in lines
    assert lines[lines.index("  word text = null") + 1] == "      a word"
    assert lines[lines.index("  i") + 1] == "      number, from 0 [row]"
    with pytest.raises(UserError, match="Did you mean 'echo'"):
        explain("ecko")


def test_parameters_of_the_command() -> None:
    assert read_parameters("s", ["a", "b,c"], ["x=1=2", "y="]) == {
        "study": "s",
        "run": ["a", "b,c"],
        "x": "1=2",
        "y": "",
    }
    assert read_parameters(None, [], []) == {}
    with pytest.raises(UserError, match="'window': expected key=value"):
        read_parameters(None, [], ["window"])
    with pytest.raises(UserError, match="'study' is given twice"):
        read_parameters("s", [], ["study=t"])
    for name, listing in (("buckets", False), (None, True)):
        with pytest.raises(UserError, match="one of them at a time"):
            check_request("SELECT 1", name, {}, listing)
    with pytest.raises(UserError, match="a query that --name runs"):
        check_request(None, None, {"study": "s"}, False)


def test_mistakes_of_the_command_are_one_line(demo: DemoResults) -> None:
    done = command_line(demo, "--name", "buckets", "--param", "window=ten")
    assert done.returncode == 2
    assert done.stderr.decode().startswith("error: query 'buckets': parameter 'window': ")
    assert done.stderr.count(b"\n") == 1


def test_the_screen_shows_defaults_and_empty_fields_have_them(
    results: Path, demo: DemoResults
) -> None:
    runs = [row["run"] for row in demo.rows["runs"]][:2]
    test = open_screen(
        "sql", named="snowball", parameters=["window=2", *(f"run={run}" for run in runs)]
    )
    field = next(item for item in test.text_input if item.label.startswith("window"))
    assert (field.value, field.placeholder) == ("2", "default: 10")
    assert test.multiselect[0].value == runs
    assert test.multiselect[0].placeholder == "default: null"
    two = test.dataframe[-1].value
    field.set_value("")
    test.multiselect[0].set_value([])
    next(item for item in test.button if item.form_id == "named").click().run()
    assert test.query_params["named"] == "snowball" and "parameters" not in test.query_params
    ten = test.dataframe[-1].value
    with open_catalog(results / "workbench.duckdb") as connection:
        given = {"window": 2, "run": runs}
        assert len(two) == ask_named(connection, "snowball", given).frame.height
        assert len(ten) == ask_named(connection, "snowball", {}).frame.height != len(two)
    missing = open_screen("sql", named="lineage")
    assert missing.error and "needs the parameter" in texts(missing)


def test_the_screen_offers_runs(demo: DemoResults, results: Path) -> None:
    runs = [row["run"] for row in demo.rows["runs"] if row["arm"] == "exgrpo"]
    test = open_screen("sql", named="runs_overview", parameters=[f"run={run}" for run in runs])
    assert list(test.dataframe[-1].value["run"]) == runs
    assert set(test.multiselect[0].options) == {row["run"] for row in demo.rows["runs"]}
