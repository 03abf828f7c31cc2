"""The gate before typed SQL: one SELECT that reads tables of the catalog, and nothing else.

The connection of `open_catalog` forbids writing, but leaves the catalog's own file and its folder
for spilled rows open to functions that read files. So what a statement reads is checked in the
syntax tree that DuckDB itself makes of it, before it runs.
"""

import json
import re
from typing import Any

import duckdb

from analysis.errors import UserError

# Functions of rows that touch neither files nor settings nor other SQL.
ROW_FUNCTIONS = frozenset(
    [
        *("duckdb_columns", "duckdb_functions", "duckdb_schemas", "duckdb_tables"),
        *("duckdb_types", "duckdb_views", "generate_series", "json_each", "json_tree"),
        *("marked_visits", "range", "scope", "tested_samples", "unnest"),
    ]
)
# Functions of a value that tell settings, write, or only wait, and those that end the whole process
# when the SQL, or the type, that they read from a text is nested too deeply.
REFUSED = frozenset(
    [
        *("current_setting", "from_json", "from_json_strict", "getenv", "json_deserialize_sql"),
        *("json_serialize_plan", "json_serialize_sql", "json_transform", "json_transform_strict"),
        *("pg_sleep", "sleep_ms", "write_log"),
    ]
)
LONGEST = 100_000  # characters; DuckDB's parser ends the process at some millions
MOST_WITH = 6  # a mistake inside twelve nested WITH takes its parser more than 5 GB

_SYSTEM = re.compile(r"(duckdb|pg|pragma|sqlite)_\w+")
_TREE = "SELECT json_serialize_sql($statement::VARCHAR)"
_TABLES = "SELECT lower(table_name) FROM duckdb_tables() WHERE NOT internal"


def one_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The one statement in `sql`; UserError when it is not one SELECT of the catalog's tables.

    Raises duckdb.Error when `sql` is no SQL.
    """
    _check_text(sql)
    statements = cursor.extract_statements(sql)
    if len(statements) != 1:
        raise UserError(
            f"expected one statement, found {len(statements)}. Ask one SELECT at a time."
        )
    kind, statement = statements[0].type, statements[0].query
    if kind != duckdb.StatementType.SELECT:
        hint = "Write PIVOT as conditional sums, `sum(x) FILTER (WHERE ...)`. "
        raise UserError(
            f"{kind.name} is refused: only SELECT reads the catalog, and nothing changes it. "
            + (hint if kind == duckdb.StatementType.MULTI else "")
            + "See `exgrpo sql` and `\\d` for its tables."
        )
    tree = nodes(cursor, statement)
    tables = {name for (name,) in cursor.sql(_TABLES).fetchall()}
    homes = _homes(cursor)
    for node in tree:
        if node.get("type") == "TABLE_FUNCTION":
            _check_row_function(_path(node["function"])[-1])
        elif node.get("type") == "BASE_TABLE":
            _check_table(_path(node), tables, homes)
        elif node.get("type") == "SHOW_REF" and node["show_type"] == "SHOW":
            _check_shown(_path(node)[-1], tables)
        elif node.get("class") == "FUNCTION" and _path(node)[-1].lower() in REFUSED:
            raise UserError(f"the function {_path(node)[-1]!r} is refused in typed SQL.")
    return statement


def _check_text(sql: str) -> None:
    """Refuse what DuckDB's parser cannot take: no Unicode, too long, or WITH in WITH in WITH."""
    if len(sql) > LONGEST:
        raise UserError(
            f"the query has {len(sql):,} characters; at most {LONGEST:,} are read. Ask less at "
            f"once."
        )
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise UserError(
            f"the query is no UTF-8 at character {error.start + 1}. Send it as UTF-8."
        ) from None
    if (found := _count_with(sql)) > MOST_WITH:
        raise UserError(
            f"the query says WITH {found} times; at most {MOST_WITH} are read. List all after one: "
            f"`WITH a AS (...), b AS (...)`."
        )


def _count_with(sql: str) -> int:
    """How often the keyword is there; in a text or a comment it does not count."""
    source = sql.encode()
    return sum(
        source[start : start + 4].lower() == b"with"
        for start, kind in duckdb.tokenize(sql)
        if kind == duckdb.token_type.keyword
    )


def nodes(cursor: duckdb.DuckDBPyConnection, statement: str) -> list[dict[str, Any]]:
    """Every node of the syntax tree, however deep. Raises UserError when there is no tree."""
    (row,) = cursor.sql(_TREE, params={"statement": statement}).fetchall()
    nodes: list[dict[str, Any]] = []

    def keep(node: dict[str, Any]) -> dict[str, Any]:
        nodes.append(node)
        return node

    try:
        tree = json.loads(row[0], object_hook=keep)
    except RecursionError:
        raise UserError("the query is nested too deeply. Split it with WITH.") from None
    if tree["error"]:
        raise UserError(f"this SELECT is refused: {tree['error_message']}")
    return nodes


def _path(node: dict[str, Any]) -> list[str]:
    """The name that a node has in SQL: database and schema, if given, and name."""
    path: list[str] = node["qualified_name"]["path"]
    return path


def _homes(cursor: duckdb.DuckDBPyConnection) -> list[list[str]]:
    """The ways to write where a table of the catalog is: not at all, `main`, its database."""
    ((database,),) = cursor.sql("SELECT lower(current_database())").fetchall()
    return [[], ["main"], [database], [database, "main"]]


def _check_row_function(name: str) -> None:
    if name.lower() not in ROW_FUNCTIONS:
        raise UserError(
            f"the table function {name!r} is refused: typed SQL reads the tables of the catalog, "
            f"and no files or settings. Allowed: {', '.join(sorted(ROW_FUNCTIONS))}."
        )


def _check_table(path: list[str], tables: set[str], homes: list[list[str]]) -> None:
    """Refuse what is neither a table of the catalog nor a name that can only be one of WITH.

    DuckDB takes a name with a dot, `'x.csv'` and `x.csv` alike, for a file.
    """
    *home, name = (part.lower() for part in path)
    plain = re.fullmatch(r"\w+", name)
    if (home == ["information_schema"] and plain) or (name in tables and home in homes):
        return
    if home or not plain:
        raise UserError(
            f"{'.'.join(path)!r} is no table of the catalog: files are refused. See `exgrpo sql` "
            f"and `\\d` for its tables."
        )
    if _SYSTEM.fullmatch(name) and name not in ROW_FUNCTIONS:
        raise UserError(f"the system table {name!r} is refused: it tells about the machine.")


def _check_shown(name: str, tables: set[str]) -> None:
    """`SHOW x` tells a setting where x is no table."""
    if name.lower() not in tables:
        raise UserError(f"{name!r} is no table of the catalog: SHOW of settings is refused.")
