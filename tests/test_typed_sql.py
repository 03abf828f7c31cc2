"""SQL that a user types: it reads the catalog and can do nothing else."""

import time

import duckdb
import polars as pl
import pytest
from hostile_sql import LEAKS_ACCEPTED
from lake_fixture import DemoResults

from analysis import catalog
from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.queries import MOST_BYTES, ask, flat


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM trajectories",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a;",
        "FROM runs",
        "DESCRIBE runs",
        "SHOW TABLES",
        "SHOW runs",
        "SHOW main.runs",
        "SUMMARIZE steps",
        "VALUES (1)",
        "-- a comment\nSELECT 1 -- and another",
        "SELECT 1 /* FROM read_text('x') */",
        "SELECT 'FROM read_text(''x'')'",
        'FROM main."RUNS" AS read_text',
        "FROM workbench.main.runs",
        "FROM (SELECT unnest([1, 2]) AS x) JOIN range(3) AS t(x) USING (x)",
        "FROM scope(NULL, NULL)",
        "SELECT 'with with' /* with with with */ AS é -- with with with",
        "SELECT {'interval': 1, 'binary': 2, 'x_union': 3}",
        "SELECT '0001-01-01'::DATE, '9999-12-31 23:59:59'::TIMESTAMP, NULL::DATE, now()",
        "SELECT key FROM json_each('{\"a\": 1}')",
        "FROM duckdb_columns()",
        "FROM duckdb_tables",
        "SHOW ALL TABLES",
        "FROM runs PIVOT (count(*) FOR arm IN ('exgrpo'))",
        "SELECT " + " OR ".join(["run = 'x'"] * 2000) + " FROM runs",
        *LEAKS_ACCEPTED,
    ],
)
def test_reading_is_allowed(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    assert not ask(connection, sql).frame.is_empty()


def test_the_row_limit_holds(connection: duckdb.DuckDBPyConnection) -> None:  # o51
    found = ask(connection, "SELECT * FROM range(1000000000)", limit=10)
    assert found.frame["range"].to_list() == list(range(10))
    assert found.truncated
    assert found.seconds < 5
    assert not ask(connection, "SELECT * FROM range(10)", limit=10).truncated


def test_the_time_limit_holds(own: DemoResults) -> None:  # o51
    start = time.monotonic()
    with open_catalog(own.catalog, seconds=0.5) as connection:
        with pytest.raises(UserError, match="time limit"):
            ask(connection, "SELECT count(*) FROM range(100000000000) a, range(1000000) b")
        assert time.monotonic() - start < 10
        assert ask(connection, "SELECT 1").frame.item() == 1


def test_the_memory_limit_holds(own: DemoResults, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "MEMORY", "100MB")
    with open_catalog(own.catalog) as connection:
        with pytest.raises(UserError, match="Out of Memory"):
            ask(connection, "SELECT list(range) FROM range(1000000000)")
        assert ask(connection, "SELECT 1").frame.item() == 1


def test_a_sort_larger_than_memory_goes_to_disk_and_leaves_nothing(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog, "MEMORY", "100MB")
    sql = """
        SELECT max(place), count(*)
        FROM (SELECT row_number() OVER (ORDER BY hash(range)) AS place FROM range(10000000))
    """
    with open_catalog(own.catalog) as connection:
        assert ask(connection, sql).frame.row(0) == (10_000_000, 10_000_000)
        assert catalog.SPILL.is_dir()
    assert not catalog.SPILL.exists()


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT nosuch FROM steps", r'"nosuch" not found .* \(line 1, at `nosuch`\)'),
        ("SELECT 1,\n nosuch\nFROM steps", r"\(line 2, at `nosuch`\)"),
        ("SELECT * FROM stepz", r'Did you mean "steps"\? \(line 1, at `stepz`\)'),
        ("SELECT 1 WHERE", r"syntax error .*\(line 1, at `WHERE`\)"),
        ("SELECT 'a'::INT", "Could not convert string 'a' to INT32"),
        ("SELECT study::INT FROM runs", "from source column study$"),
        ("SELECT INTERVAL 1 DAY", "Cast it"),
        ("SELECT INTERVAL 1 DAY AS i WHERE false", "'i' is month_day_nano_interval. Cast it"),
        ("SELECT {'a': [INTERVAL 1 DAY]}", "Cast it"),
        ("SELECT union_value(a := 1)", "Cast it"),
        ("SELECT 'x'::BLOB", "is binary. Cast it"),
        ("SELECT map {[1]: 2}", "Cast it"),
        ("SELECT 'infinity'::DATE AS d", "'d' has a date outside the years 1 to 9999. Cast it"),
        ("SELECT '-infinity'::TIMESTAMP", "outside the years 1 to 9999"),
        ("SELECT '290000-01-01'::TIMESTAMPTZ", "outside the years 1 to 9999"),
        ("WITH a AS (" * 12, "says WITH 12 times; at most 6"),
        ("SELECT NULL::INT" + "[]" * 450, "Recursion level .* Cast it"),
        ("PIVOT runs ON arm", "conditional sums"),
        ("SELECT " + "+".join("1" * 900), "nested too deeply"),
        ("FROM READ_text('x')", "table function 'read_text' is refused.*Allowed: .*range"),
        ("FROM 'Some/file.csv'", "'Some/file.csv' is no table of the catalog"),
        ("FROM pg_settings", "system table 'pg_settings' is refused"),
        ("SELECT current_setting('threads')", "function 'current_setting' is refused"),
        ("SHOW temp_directory", "'temp_directory' is no table of the catalog"),
        ("SELECT '\ud800'", "no UTF-8 at character 9"),
        ("FROM runs a" + " JOIN runs b ON true" * 500_000, "has 10,000,011 characters; at most"),
    ],
)
def test_errors_say_what_and_where(
    connection: duckdb.DuckDBPyConnection, sql: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        ask(connection, sql)


def test_integer_sums_are_integers_and_huge_ones_stay_exact(
    connection: duckdb.DuckDBPyConnection,
) -> None:  # o43
    frame = ask(
        connection, "SELECT sum(steps) AS s, 9223372036854775808::HUGEINT AS h FROM runs"
    ).frame
    assert frame.schema["s"] == pl.Int64
    assert int(frame["h"][0]) == 9223372036854775808


def test_columns_with_one_name_are_told_apart(connection: duckdb.DuckDBPyConnection) -> None:
    assert ask(connection, "SELECT 1 AS a, 2 AS a").frame.columns == ["a", "a_1"]


@pytest.mark.parametrize("limit", [1000, 1_000_000])
def test_an_answer_ends_at_its_most_bytes(
    connection: duckdb.DuckDBPyConnection, limit: int
) -> None:
    found = ask(connection, "SELECT range AS i, repeat('x', 100000) FROM range(100000)", limit)
    assert found.truncated
    assert 300 < found.frame.height < 700
    assert found.frame["i"].to_list() == list(range(found.frame.height))
    assert found.frame.estimated_size() < MOST_BYTES


def test_one_row_too_large_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(UserError, match="first row alone is larger than 64 MB"):
        ask(connection, "SELECT repeat('x', 70000000)")


def test_an_answer_of_many_vectors_is_whole(connection: duckdb.DuckDBPyConnection) -> None:
    found = ask(connection, "SELECT range AS a, range AS a FROM range(9000)", 10_000)
    assert found.frame["a_1"].to_list() == list(range(9000))
    assert not found.truncated


def test_lists_and_structures_are_json_in_csv(connection: duckdb.DuckDBPyConnection) -> None:
    frame = ask(
        connection, "SELECT [1, NULL] AS l, {'x': 'y'} AS s, NULL::INT[] AS n, 7 AS i"
    ).frame
    assert flat(frame).row(0) == ("[1, null]", '{"x": "y"}', None, 7)
    assert flat(frame.clear()).schema["l"] == pl.String


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "SELECT (CASE WHEN range = 50000 THEN 'x' ELSE '1' END)::INT FROM range(100000)",
            "^Conversion Error: Could not convert string 'x' to INT32$",
        ),
        ("SELECT list(range) OVER (ORDER BY range) FROM range(200000)", "^Out of Memory Error"),
    ],
)
def test_an_error_after_the_first_rows_is_told_too(
    own: DemoResults, monkeypatch: pytest.MonkeyPatch, sql: str, message: str
) -> None:
    monkeypatch.setattr(catalog, "MEMORY", "100MB")
    with open_catalog(own.catalog) as connection:
        with pytest.raises(UserError, match=message):
            ask(connection, sql, 1_000_000)
        assert ask(connection, "SELECT 1").frame.item() == 1


def test_the_time_limit_holds_after_the_first_rows(own: DemoResults) -> None:
    rare = "SELECT a.range FROM range(10000000000) a WHERE a.range < 5000 OR a.range = -1"
    with (
        open_catalog(own.catalog, seconds=0.5) as connection,
        pytest.raises(UserError, match="time limit"),
    ):
        ask(connection, rare, 1_000_000)
