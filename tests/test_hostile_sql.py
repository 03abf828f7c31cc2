"""Hostile SQL is refused at every door: the function, the terminal, the page; o47, o49, o53."""

import io
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import polars as pl
import pytest
from hostile_sql import LEAKS_ACCEPTED, contents, hostile_statements
from lake_fixture import STUDY, DemoResults
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from screens import open_screen

from analysis import catalog
from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.named import NamedQuery
from analysis.queries import answer, ask, named_queries
from app import data
from pipeline.sql import Output, print_answer, print_named, prompt

Captured = pytest.CaptureFixture[str]

HANDFUL = (
    "FROM read_text('/etc/hostname')",
    "COPY (SELECT 1) TO 'x.csv'",
    "ATTACH 'y.db'",
    "INSTALL httpfs",
    "SET enable_external_access = true",
    "DESCRIBE \"read_csv('/etc/hostname')\"",
)
HOSTILE_VALUES = (
    "x' OR '1'='1",
    "'; DROP TABLE runs; --",
    "read_text('/etc/hostname')",
    "/etc/passwd.csv",
    "$study",
    "%",
    "a\x00b",
    '"] OR true --',
)


@pytest.fixture(scope="module")
def copied(demo: DemoResults, tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    folder = tmp_path_factory.mktemp("hostile") / "results"
    shutil.copytree(demo.results, folder)
    return DemoResults(folder, demo.study, demo.rows)


@pytest.fixture
def untouched(
    copied: DemoResults, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DemoResults]:
    """Results that are the same byte for byte after the test, as is all around them."""
    monkeypatch.chdir(tmp_path)  # where a relative name would be written
    monkeypatch.setenv("EXGRPO_RESULTS", str(copied.results))
    folders = (copied.results, catalog.SPILL, tmp_path)
    before = [contents(folder) for folder in folders]
    assert len(before[0]) > 10
    yield copied
    (copied.results / ".sql_history").unlink(missing_ok=True)
    assert [contents(folder) for folder in folders] == before


def let_through(statements: list[str], door: Callable[[str], object]) -> list[str]:
    """The statements that the door answers; the others it refuses in one line."""
    answered = []
    for sql in statements:
        try:
            door(sql)
        except UserError as error:
            assert "\n" not in str(error), sql
        else:
            answered.append(sql)
    return answered


def test_the_function_refuses_all(untouched: DemoResults) -> None:
    a_python_frame = pl.DataFrame({"secret": [1]})  # noqa: F841
    statements = [*hostile_statements(untouched.results), *HANDFUL, "", " ; "]
    assert len(statements) > 150
    with open_catalog(untouched.catalog) as connection:
        assert let_through(statements, lambda sql: ask(connection, sql)) == []
        assert ask(connection, "SELECT count(*) FROM trajectories").frame.item() > 0


def test_its_own_file_and_folder_cannot_be_read(untouched: DemoResults) -> None:
    # DuckDB alone would read its own file and folder: the gate is what refuses.
    own = [
        f"SELECT size FROM read_blob('{untouched.catalog}')",
        f"SELECT file FROM glob('{catalog.SPILL}/*')",
    ]
    with open_catalog(untouched.catalog) as connection:
        assert connection.sql(own[0]).fetchall() == [(untouched.catalog.stat().st_size,)]
        assert let_through(own, lambda sql: ask(connection, sql)) == []


def test_the_prompt_refuses_all(
    untouched: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = hostile_statements(untouched.results)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("".join(f"{sql}\n" for sql in statements) + "\\q\n")
        prompt(untouched.results)
    captured = capsys.readouterr()
    assert captured.err.count("error: ") == len(captured.err.splitlines()) == len(statements)
    assert "rows: " not in captured.out


@pytest.mark.parametrize("sql", HANDFUL)
def test_one_query_and_a_script_are_refused(
    untouched: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(sql))
    assert let_through([sql], lambda _: prompt(untouched.results)) == []
    assert let_through([sql], lambda sql: print_answer(untouched.results, sql)) == []
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [(["FROM read_text('/etc/hostname')"], ""), ([], "COPY (SELECT 1) TO 'x.csv';\n")],
)
def test_the_command_refuses(untouched: DemoResults, arguments: list[str], text: str) -> None:
    command = [sys.executable, "-m", "pipeline.cli", "sql", *arguments]
    command += ["--results", str(untouched.results)]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root, input=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is refused" in done.stderr
    assert not (root / "x.csv").exists()


def test_the_page_refuses_all(untouched: DemoResults) -> None:
    statements = hostile_statements(untouched.results)
    assert let_through(statements, lambda sql: data.ask(sql, 100)) == []


@pytest.mark.parametrize("sql", HANDFUL)
def test_the_screen_refuses(untouched: DemoResults, sql: str) -> None:
    test = open_screen("sql", sql=sql)
    assert len(test.error) == 1
    assert len(test.dataframe) == len(open_screen("sql").dataframe)  # no answer


@pytest.mark.parametrize("sql", LEAKS_ACCEPTED)
def test_what_may_be_seen_holds_no_path(untouched: DemoResults, sql: str) -> None:
    with open_catalog(untouched.catalog) as connection:
        shown = str(ask(connection, sql, 10_000).frame.to_dicts())
    for path in (untouched.results, Path.home(), catalog.SPILL):
        assert str(path) + "/" not in shown and str(path) + "'" not in shown


@pytest.mark.parametrize("query", named_queries().values(), ids=lambda query: str(query.name))
def test_no_value_of_a_parameter_bends_a_named_query(
    untouched: DemoResults, query: NamedQuery
) -> None:
    known = {"study": STUDY, "benchmark": "validation"}
    numbers = {"integer": 1, "double": 0.5, "boolean": True, "text": "x"}
    given = {
        parameter.name: known.get(parameter.name, numbers.get(parameter.type))
        for parameter in query.parameters.values()
        if parameter.required
    }
    texts = [name for name, each in query.parameters.items() if each.type.startswith("text")]
    with open_catalog(untouched.catalog) as connection:
        for name in texts:
            nobody = outcome(connection, query.name, given, name, "nobody")
            for value in HOSTILE_VALUES:
                assert outcome(connection, query.name, given, name, value) == nobody


def outcome(
    connection: duckdb.DuckDBPyConnection,
    query: str,
    given: dict[str, object],
    name: str,
    value: str,
) -> object:
    """The rows, or the reason of a refusal without the value that it names."""
    try:
        return answer(connection, query, **{**given, name: value}).rows()
    except UserError as error:
        return str(error).replace(value.replace("\x00", r"\0"), "")


def test_hostile_values_are_text_in_the_terminal_too(
    untouched: DemoResults, capsys: Captured
) -> None:
    for value in HOSTILE_VALUES:
        with pytest.raises(UserError, match="the catalog has no study"):
            print_named(untouched.results, "buckets", {"study": value}, Output("csv"))
        assert capsys.readouterr().out == ""
