"""`exgrpo sql`: one answer in three formats, a script, and mistakes."""

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from lake_fixture import HOSTILE, STEPS, DemoResults, make_results
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from analysis.errors import UserError
from pipeline.sql import HISTORY, Output, print_answer, prompt
from pipeline.terminal import CONTROL

Captured = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    return make_results(tmp_path_factory.mktemp("demo"))


def script(demo: DemoResults, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    prompt(demo.results)


def command_line(demo: DemoResults, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.cli", "sql", *arguments]
    command += ["--results", str(demo.results)]
    root = Path(__file__).resolve().parents[1]
    return subprocess.run(command, capture_output=True, text=True, cwd=root)


def test_a_table_shows_names_values_and_nulls(demo: DemoResults, capsys: Captured) -> None:
    print_answer(demo.results, "SELECT arm, seed FROM runs WHERE arm = 'base'")
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["arm", "seed"]
    assert lines[2] == ["base", "null"]


def test_csv_can_be_read_back(demo: DemoResults, capsys: Captured) -> None:
    sql = "SELECT run, step, bucket_sizes, reward FROM steps ORDER BY run, step"
    print_answer(demo.results, sql, Output("csv"))
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    expected = sorted(demo.rows["steps"], key=lambda row: (row["run"], row["step"]))
    assert [(row["run"], int(row["step"])) for row in rows] == [
        (row["run"], row["step"]) for row in expected
    ]
    assert [float(row["reward"]) for row in rows] == [row["reward"] for row in expected]
    assert [json.loads(row["bucket_sizes"]) for row in rows] == [
        row["bucket_sizes"] for row in expected
    ]


def test_json_is_one_object_a_line(demo: DemoResults, capsys: Captured) -> None:
    print_answer(
        demo.results, "SELECT bucket_sizes, loss > 9 AS big FROM steps LIMIT 2", Output("json")
    )
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line.keys() for line in lines] == [{"bucket_sizes", "big"}] * 2
    assert lines[0]["big"] is False


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_left_out_rows_are_said_apart_from_the_answer(
    demo: DemoResults, capsys: Captured, format: str
) -> None:
    print_answer(demo.results, "FROM steps SELECT step", Output(format, 3))
    captured = capsys.readouterr()
    assert "only the first 3 rows" in captured.err
    assert "only the first" not in captured.out
    print_answer(demo.results, "FROM steps SELECT step LIMIT 3", Output(format, 3))
    assert capsys.readouterr().err == ""


def test_model_text_is_shown_and_not_obeyed(demo: DemoResults, capsys: Captured) -> None:  # o55
    escaped = "SELECT chr(27) || '[31m[bold]red' AS x, response FROM trajectories"
    print_answer(demo.results, f"{escaped} WHERE contains(response, 'onerror')")
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31m[bold]red" in out
    assert "".join(HOSTILE.split())[:20] in "".join(out.split())


ESCAPE = "'\x1b[31mred\x9b2J'"


def test_an_error_is_shown_and_not_obeyed(demo: DemoResults, capsys: Captured) -> None:
    with pytest.raises(UserError) as error:
        print_answer(demo.results, f"SELECT {ESCAPE}::INT")
    assert "\x1b" in str(error.value)  # DuckDB quotes the value as it is
    done = command_line(demo, f"SELECT {ESCAPE}::INT")
    assert done.returncode == 2
    assert "\\x1b[31mred\\x9b2J" in done.stderr
    assert not CONTROL.search(done.stderr)


@pytest.mark.parametrize("format", ["table", "csv", "json"])
def test_on_a_terminal_every_format_is_free_of_control_characters(
    demo: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "dumb")  # without our own bold head
    print_answer(demo.results, f'SELECT {ESCAPE} AS "a\x1b[1m"', Output(format))
    out = capsys.readouterr().out
    assert "red" in out
    assert not CONTROL.search(out)


def test_into_a_file_csv_is_exact(demo: DemoResults, capsys: Captured) -> None:
    print_answer(demo.results, f"SELECT {ESCAPE} AS x", Output("csv"))
    assert capsys.readouterr().out == f"x\n{ESCAPE[1:-1]}\n"


def test_what_was_cut_for_its_size_is_said(demo: DemoResults, capsys: Captured) -> None:
    print_answer(demo.results, "SELECT repeat('x', 1000000) FROM range(100)", Output("csv"))
    assert "rows; more would be above 64 MB" in capsys.readouterr().err


def test_a_script_of_statements(
    demo: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(demo, monkeypatch, "SELECT 1 AS one;\nSELECT\n  max(step) AS last\nFROM steps\n")
    words = capsys.readouterr().out.split()
    assert "one" in words and "last" in words and str(STEPS) in words


def test_tables_and_columns_with_their_meaning(
    demo: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(demo, monkeypatch, "\\d\n\\d steps\n\\q\nSELECT nothing;\n")
    words = " ".join(capsys.readouterr().out.split())
    assert "experience" in words and "a change of the replay buffer" in words
    assert "grad_norm double gradient norm before clipping" in words


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\\d nosuch", "no table 'nosuch'"),
        ("\\d read_csv('/etc/hostname')", "no table"),  # o53
        ("\\d x' OR '1'='1", "no table"),
        ("\\x", "unknown command"),
        ("DROP TABLE runs;", "DROP is refused"),
    ],
)
def test_mistakes_are_errors(
    demo: DemoResults, monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        script(demo, monkeypatch, text)


def test_an_unknown_format_is_an_error(demo: DemoResults) -> None:
    with pytest.raises(UserError, match="Known: table, csv, json, parquet"):
        print_answer(demo.results, "SELECT 1", Output("xml"))


def test_time_without_end_is_an_error(demo: DemoResults) -> None:
    with pytest.raises(UserError, match="--seconds inf: at most 1,000,000"):
        print_answer(demo.results, "SELECT 1", Output(seconds=float("inf")))


def test_the_command_line(demo: DemoResults) -> None:
    good = command_line(demo, "SELECT count(*) AS n FROM trajectories", "--format", "csv")
    assert (good.returncode, good.stdout) == (0, f"n\n{len(demo.rows['trajectories'])}\n")
    bad = command_line(demo, "DROP TABLE runs")
    assert bad.returncode == 2
    assert bad.stderr.startswith("error: DROP is refused")
    assert "Traceback" not in bad.stderr


def test_the_prompt_goes_on_after_a_mistake(
    demo: DemoResults, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        keys.send_text("SELECT nosuch FROM steps\n\nSELECT chr(27)::INT;\n")
        keys.send_text("SELECT 40 + 2 AS x;\n\\q\nSELECT 7;\n")
        prompt(demo.results)
    captured = capsys.readouterr()
    assert f"duckdb -readonly {demo.catalog}" in captured.out
    assert "error: Binder Error" in captured.err
    assert "\x1b" not in captured.err and "'\\x1b'" in captured.err
    assert "42" in captured.out and "7" not in captured.out.split()
    assert "SELECT 40 + 2 AS x;" in (demo.results / HISTORY).read_text()
