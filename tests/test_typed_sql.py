"""SQL that a user types: it reads the catalog and can do nothing else."""

import shutil
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest
from lake_fixture import DemoResults

from analysis import catalog
from analysis.catalog import open_catalog
from analysis.errors import UserError
from analysis.queries import MOST_BYTES, ask, flat

HOSTILE_SQL = """
SELECT * FROM read_text('/etc/hostname')
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_blob('../../etc/passwd')
SELECT * FROM read_parquet('{lake}/steps/*.parquet')
SELECT * FROM read_json('{lake}/entries/*.json')
SELECT * FROM '/etc/passwd'
SELECT * FROM '{lake}/steps/x.parquet'
SELECT * FROM glob('/etc/*')
SELECT * FROM 's3://bucket/key.parquet'
SELECT * FROM 'https://example.com/x.csv'
SELECT * FROM sniff_csv('/etc/passwd')
SELECT * FROM parquet_metadata('{lake}/steps/x.parquet')
COPY (SELECT 1) TO 'x.csv'
COPY (SELECT 1) TO '{lake}/steps/new.parquet'
COPY (SELECT 1) TO '{part}' (FORMAT parquet, USE_TMP_FILE false)
COPY runs FROM '/etc/passwd'
EXPLAIN ANALYZE COPY (SELECT 1) TO '{part}'
EXPLAIN SELECT 1
WITH a AS (COPY (SELECT 1) TO '{part}') SELECT * FROM a
WITH a AS (INSERT INTO runs (run) VALUES ('x') RETURNING *) SELECT * FROM a
WITH a AS (DELETE FROM runs RETURNING *) SELECT * FROM a
WITH a AS (UPDATE runs SET arm = 'x' RETURNING *) SELECT * FROM a
EXPORT DATABASE '{lake}/export'
IMPORT DATABASE '{lake}/export'
ATTACH '{lake}/other.duckdb'
ATTACH ':memory:' AS m
DETACH workbench
USE memory
INSTALL httpfs
LOAD httpfs
SET enable_external_access = true
SET lock_configuration = false
SET memory_limit = '100GB'
SET max_execution_time = 0
RESET enable_external_access
SET python_enable_replacements = true
CREATE TABLE t (i INT)
CREATE TEMP TABLE t AS SELECT 1
CREATE MACRO f(x) AS x + 1
CREATE SECRET s (TYPE s3)
CREATE VIEW v AS SELECT 1
INSERT INTO runs (run) VALUES ('x')
UPDATE runs SET arm = 'x'
DELETE FROM runs
DROP TABLE runs
ALTER TABLE runs RENAME TO r
PRAGMA database_list
PRAGMA enable_profiling
CALL pragma_version()
CHECKPOINT
VACUUM
BEGIN TRANSACTION
PREPARE p AS SELECT 1
EXECUTE p
SELECT 1; SELECT 2
SELECT 1; DROP TABLE runs
PIVOT runs ON arm USING count(*)
SELECT * FROM a_python_frame
SELECT * FROM duckdb_secrets()
SELECT getenv('HOME')
SELECT * FROM query('COPY runs TO ''x.csv''')
SELECT * FROM query_table('/etc/passwd')
DESCRIBE read_csv('/etc/hostname')
DESCRIBE SELECT * FROM read_csv('/etc/hostname')
SUMMARIZE '/etc/passwd'
SELECT $x
-- nothing but a comment
""".strip().splitlines()


@pytest.mark.parametrize("sql", [*HOSTILE_SQL, "", " ; "])
def test_hostile_sql_is_refused(own_untouched: DemoResults, sql: str) -> None:  # o47, o53
    a_python_frame = pl.DataFrame({"secret": [1]})  # noqa: F841
    results = own_untouched.results
    part = next((results / "lake" / "steps").glob("*.parquet"))
    before = _files(results)
    with open_catalog(own_untouched.catalog) as connection:
        with pytest.raises(UserError) as error:
            ask(connection, sql.format(lake=results / "lake", part=part))
        assert "\n" not in str(error.value)
        assert ask(connection, "SELECT count(*) FROM trajectories").frame.item() > 0
    assert _files(results) == before
    assert not Path("x.csv").exists()


@pytest.fixture(scope="module")
def own_untouched(demo: DemoResults, tmp_path_factory: pytest.TempPathFactory) -> DemoResults:
    """One copy for all hostile statements: each checks that it left it as it was."""
    folder = tmp_path_factory.mktemp("hostile") / "results"
    shutil.copytree(demo.results, folder)
    return DemoResults(folder, demo.study, demo.rows)


def _files(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM trajectories",
        "WITH a AS (SELECT 1 AS x) SELECT * FROM a;",
        "FROM runs",
        "DESCRIBE runs",
        "SHOW TABLES",
        "SUMMARIZE steps",
        "VALUES (1)",
        "-- a comment\nSELECT 1 -- and another",
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
        ("PIVOT runs ON arm", "conditional sums"),
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
