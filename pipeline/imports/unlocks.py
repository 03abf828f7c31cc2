"""Which of our columns an import fills, and which named queries it can therefore answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

from analysis.gate import nodes
from analysis.lake import Entry
from analysis.queries import named_queries
from exgrpo.tables import TABLES


@dataclass
class Content:
    """Columns of a table with a value, and those of them with a value that is not 0."""

    filled: set[str] = field(default_factory=set)
    telling: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Need:
    """What a named query reads: tables that an import has, tables without rows, and columns that
    tell nothing."""

    query: str
    present: list[str]
    missing: list[str]
    columns: list[str]


def contents(entry: Entry, lake: Path) -> dict[str, Content]:
    """By table, from the statistics in the entry's Parquet files."""
    facts = {name for name, value in (entry.run or {}).items() if value is not None}
    found = {"runs": Content(facts, facts)}
    for table, file in entry.tables.items():
        with (lake / file.path).open("rb") as handle:
            found[table] = _content(pq.read_metadata(handle), TABLES[table].order)
    return found


def _content(meta: pq.FileMetaData, keys: Iterable[str]) -> Content:
    content = Content(set(keys), set(keys))
    for group in map(meta.row_group, range(meta.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            name, known = column.path_in_schema.split(".")[0], column.statistics
            if known and known.has_null_count and known.null_count == column.num_values:
                continue
            content.filled.add(name)
            if not (known and known.has_min_max and _nothing(known.min) and _nothing(known.max)):
                content.telling.add(name)
    return content


def _nothing(value: object) -> bool:
    """A count of 0: nothing was there to count. False is an answer."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value == 0


def needs(catalog: duckdb.DuckDBPyConnection, found: dict[str, Content]) -> list[Need]:
    """Of every named query, in their order."""
    macros = _macros(catalog)
    return [
        _need(name, _names(catalog, query.sql, macros), found)
        for name, query in sorted(named_queries().items())
    ]


@dataclass(frozen=True)
class Names:
    """Names of tables and columns in a query, and in the macros that it uses."""

    tables: set[str]
    columns: set[str]


def _macros(catalog: duckdb.DuckDBPyConnection) -> dict[str, tuple[str, list[str]]]:
    """SQL and parameters of the catalog's own macros, by name."""
    found = catalog.sql(
        "select function_name, if(function_type = 'macro', 'select ', '') || macro_definition, "
        "parameters from duckdb_functions() where not internal and macro_definition is not null"
    ).fetchall()
    return {name: (sql, parameters) for name, sql, parameters in found}


def _names(
    catalog: duckdb.DuckDBPyConnection, sql: str, macros: dict[str, tuple[str, list[str]]]
) -> Names:
    """What DuckDB's syntax tree of the SQL names."""
    tables, columns = set(), set()
    for node in nodes(catalog, sql):
        if "column_names" in node:
            columns.add(node["column_names"][-1])
        path = node.get("qualified_name", {}).get("path", [])
        if path and node.get("type") == "BASE_TABLE":
            tables.add(path[-1])
        elif path and path[-1] in macros:
            inside, parameters = macros[path[-1]]
            within = _names(catalog, inside, macros)
            tables |= within.tables
            columns |= within.columns - set(parameters)
    return Names(tables, columns)


def _need(name: str, names: Names, found: dict[str, Content]) -> Need:
    tables = [table for table in TABLES if table in names.tables]
    present = [table for table in tables if table in found]
    # A name counts if any table that the query reads has it.
    there = set().union(*(found[table].telling for table in present))
    known = {name for table in present for name in TABLES[table].names}
    missing = [table for table in tables if table not in found]
    return Need(name, present, missing, sorted((known & names.columns) - there))


def describe(found: dict[str, Content], every: list[Need]) -> str:
    """The lines of the summary on columns and queries."""
    lines = ["our columns that stay empty:"]
    for table, content in found.items():
        names = [name for name in TABLES[table].names if name not in content.filled]
        lines.append(f"  {table}: {', '.join(names) or 'none'}")
    whole = [each.query for each in every if not each.missing and not each.columns]
    lines.append(f"named queries that it answers: {', '.join(whole) or 'none'}")
    related = [each for each in every if set(each.present) - {"runs"}]
    if part := [each for each in related if each.missing or each.columns]:
        lines.append("named queries that run, but read tables or columns with nothing in them:")
        for each in part:
            tables = [f"table {table}" for table in each.missing]
            lines.append(f"  {each.query}: {', '.join([*tables, *each.columns])}")
    return "\n".join(lines)
