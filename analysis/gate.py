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
        *("range", "scope", "unnest"),
    ]
)
# Functions of a value that tell settings, read SQL from a text, write, or only wait.
REFUSED = frozenset(
    ["current_setting", "getenv", "json_serialize_plan", "pg_sleep", "sleep_ms", "write_log"]
)

_SYSTEM = re.compile(r"(duckdb|pg|pragma|sqlite)_\w+")
_TREE = "SELECT json_serialize_sql($statement::VARCHAR)"
_TABLES = "SELECT lower(table_name) FROM duckdb_tables() WHERE NOT internal"


def one_select(cursor: duckdb.DuckDBPyConnection, sql: str) -> str:
    """The one statement in `sql`; UserError when it is not one SELECT of the catalog's tables.

    Raises duckdb.Error when `sql` is no SQL.
    """
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
    nodes = _nodes(cursor, statement)
    tables = {name for (name,) in cursor.sql(_TABLES).fetchall()}
    homes = _homes(cursor)
    for node in nodes:
        if node.get("type") == "TABLE_FUNCTION":
            _check_row_function(_path(node["function"])[-1])
        elif node.get("type") == "BASE_TABLE":
            _check_table(_path(node), tables, homes)
        elif node.get("class") == "FUNCTION" and _path(node)[-1].lower() in REFUSED:
            raise UserError(f"the function {_path(node)[-1]!r} is refused in typed SQL.")
    return statement


def _nodes(cursor: duckdb.DuckDBPyConnection, statement: str) -> list[dict[str, Any]]:
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
    if home == ["information_schema"] or (name in tables and home in homes):
        return
    if home or not re.fullmatch(r"\w+", name):
        raise UserError(
            f"{'.'.join(path)!r} is no table of the catalog: files are refused. See `exgrpo sql` "
            f"and `\\d` for its tables."
        )
    if _SYSTEM.fullmatch(name) and name not in ROW_FUNCTIONS:
        raise UserError(f"the system table {name!r} is refused: it tells about the machine.")
