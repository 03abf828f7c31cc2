"""Statements that every door to the catalog must refuse, and what is left to see.

`{lake}`, `{part}`, `{catalog}` and `{spill}` stand for the lake's folder, a Parquet file,
the catalog's file and the folder where DuckDB keeps rows that do not fit into memory.
"""

from pathlib import Path

from analysis import catalog

HOSTILE_SQL = r"""
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
SELECT * FROM read_blob('{catalog}')
SELECT * FROM read_duckdb('{catalog}')
SELECT * FROM '{catalog}'
SELECT * FROM workbench.duckdb
SELECT * FROM main.csv
SELECT * FROM read_text('{spill}/*')
SELECT * FROM glob('{spill}/*')
SELECT * FROM read_csv_auto('/etc/passwd')
SELECT * FROM parquet_scan('{part}')
SELECT * FROM parquet_schema('{part}')
SELECT * FROM json_execute_serialized_sql('x')
SELECT * FROM test_all_types()
SELECT * FROM main.read_text('/etc/hostname')
SELECT * FROM system.main.read_text('/etc/hostname')
SELECT * FROM "READ_text"('/etc/hostname')
sElEcT * fRoM rEaD_tExT('/etc/hostname')
SELECT/**/*/**/FROM/**/read_text/**/('/etc/hostname')
SELECT * FROM /* range( */ read_text('/etc/hostname')
SELECT * FROM ｒead_text('/etc/hostname')
SELECT * FROM 'ﬁle.csv'
FROM (FROM (FROM (FROM read_text('/etc/hostname'))))
FROM read_text('/etc/hostname') WITH ORDINALITY
SELECT (SELECT content FROM read_text('/etc/hostname'))
SELECT ARRAY(SELECT file FROM glob('/etc/*'))
SELECT TRY((SELECT content FROM read_text('/etc/hostname')))
SELECT list_transform([1], x -> (SELECT count(*) FROM glob('/etc/*')))
SELECT 1 WHERE EXISTS (FROM glob('/etc/*'))
SELECT 1 WHERE 'x' = ANY(FROM glob('/etc/*'))
SELECT 1 ORDER BY (SELECT count(*) FROM glob('/etc/*'))
SELECT 1 LIMIT (SELECT count(*) FROM glob('/etc/*'))
SELECT 1 QUALIFY (SELECT true FROM glob('/etc/*'))
SELECT count(*) FILTER (EXISTS (FROM glob('/etc/*'))) FROM runs
SELECT * REPLACE ((SELECT min(file) FROM glob('/etc/*')) AS run) FROM runs
VALUES ((SELECT count(*) FROM glob('/etc/*')))
SELECT 'x' UNION ALL SELECT file FROM glob('/etc/*')
WITH a AS MATERIALIZED (FROM glob('/etc/*')) FROM a
WITH RECURSIVE a AS (SELECT 'x' AS f UNION SELECT file FROM glob('/etc/*')) FROM a
WITH a AS (WITH "/etc/passwd.csv" AS (SELECT 1) SELECT 1) FROM '/etc/passwd.csv'
FROM runs, LATERAL (FROM read_text(run))
FROM runs, read_text(run)
FROM runs POSITIONAL JOIN read_text('/etc/hostname')
FROM runs POSITIONAL JOIN '/etc/passwd.csv'
FROM runs SEMI JOIN glob('/etc/*') ON true
FROM range((SELECT count(*) FROM glob('/etc/*')))
FROM unnest(ARRAY(SELECT file FROM glob('/etc/*')))
FROM query('SELECT 1')
FROM query('FROM read_text(''/etc/hostname'')')
FROM query_table(['runs'])
FROM query_table('read_text(''/etc/hostname'')')
FROM scope((SELECT content FROM read_text('/etc/hostname')), NULL)
FROM histogram('/etc/passwd', a)
FROM histogram_values('/etc/passwd', a)
SELECT '/etc/hostname'.read_text()
FROM '/etc/passwd'.read_csv()
FROM (CALL read_text('/etc/hostname'))
DESCRIBE FROM read_text('/etc/hostname')
DESCRIBE '/etc/passwd'
DESCRIBE "read_csv('/etc/hostname')"
SHOW '/etc/passwd'
SUMMARIZE read_csv('/etc/passwd')
SUMMARIZE FROM read_csv('/etc/passwd')
SUMMARIZE '{part}'
FROM (DESCRIBE '/etc/passwd')
FROM (SUMMARIZE '{part}')
FROM (PIVOT runs ON arm USING count(*))
FROM runs PIVOT (count(*) FOR arm IN (FROM glob('/etc/*')))
TABLE '/etc/passwd'
SELECT getenv('PATH')
SELECT current_setting('temp_directory')
SELECT 'temp_directory'.current_setting()
SELECT system.main.Current_Setting('temp_directory')
SELECT json_serialize_plan('SELECT * FROM read_csv(''/etc/passwd'')')
SELECT write_log('x')
SELECT sleep_ms(1)
SELECT pg_sleep(1)
FROM duckdb_settings()
FROM duckdb_databases
FROM duckdb_databases()
FROM duckdb_temporary_files()
FROM duckdb_logs
FROM duckdb_extensions()
FROM pragma_database_list
FROM pragma_table_info('runs')
FROM pg_settings
FROM pg_catalog.pg_settings
FROM system.information_schema.tables
SET VARIABLE x = 1
PRAGMA disable_logging
MERGE INTO runs USING steps ON false WHEN NOT MATCHED THEN INSERT
COPY FROM DATABASE workbench TO memory
TRUNCATE runs
COMMENT ON TABLE runs IS 'x'
ANALYZE
COMMIT
SELECT 1; COPY (SELECT 1) TO 'x.csv'; SELECT 1
COPY (SELECT 1) TO '{catalog}'
COPY (SELECT 1) TO '{spill}/x.csv'
ATTACH '{catalog}' AS again
ATTACH '{catalog}' AS again (READ_WRITE)
SHOW temp_directory
SHOW "Home_Directory"
FROM (SHOW temp_directory)
WITH a AS (SHOW threads) FROM a
FROM information_schema."../workbench.duckdb"
FROM information_schema."x.csv"
SELECT from_json('[1]', repeat('[', 20000) || '"INT"' || repeat(']', 20000))
SELECT json_transform('[1]', repeat('[', 20000) || '"INT"' || repeat(']', 20000))::VARCHAR
SELECT json_serialize_sql('FROM a' || repeat(' JOIN b ON true', 500000))
SELECT json_deserialize_sql(json_serialize_sql('SELECT 1'))
""".strip().splitlines()

# Told to whoever asks, and accepted: names and types in the catalog, DuckDB's version, the user.
LEAKS_ACCEPTED = (
    "FROM duckdb_tables()",
    "FROM duckdb_functions()",
    "FROM information_schema.tables",
    "SHOW DATABASES",
    "SELECT version()",
    "SELECT current_database()",
    "SELECT current_query()",
)


def hostile_statements(results: Path) -> list[str]:
    """The statements, with the places of these results filled in."""
    places = {
        "{lake}": results / "lake",
        "{part}": min(results.rglob("*.parquet")),
        "{catalog}": results / "workbench.duckdb",
        "{spill}": catalog.SPILL,
    }
    return [_filled(sql, places) for sql in HOSTILE_SQL]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a folder, byte for byte."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _filled(sql: str, places: dict[str, Path]) -> str:
    for name, place in places.items():
        sql = sql.replace(name, str(place))
    return sql
