"""How DuckDB writes the types and columns of `exgrpo.tables`."""

from collections.abc import Collection

from exgrpo.tables import Table
from exgrpo.tables.schema import BOOL, FLOAT, FLOATS, INT, INTS, TEXT, ColumnType

SQL_TYPE: dict[ColumnType, str] = {
    TEXT: "VARCHAR",
    INT: "BIGINT",
    FLOAT: "DOUBLE",
    BOOL: "BOOLEAN",
    INTS: "INTEGER[]",
    FLOATS: "FLOAT[]",
}


def quoted(names: list[str] | tuple[str, ...]) -> str:
    """The names as a list of SQL, each as a name whatever it is."""
    return ", ".join('"' + name.replace('"', '""') + '"' for name in names)


def declared(table: Table) -> str:
    """The columns of a table as CREATE TABLE wants them."""
    return ", ".join(f"{quoted([column.name])} {SQL_TYPE[column.type]}" for column in table.columns)


def cast(table: Table, among: Collection[str] | None = None) -> str:
    """The columns of a table (those `among` the names), as declared, as SELECT wants them."""
    return ", ".join(
        f"CAST({name} AS {SQL_TYPE[column.type]}) AS {name}"
        for column in table.columns
        if among is None or column.name in among
        for name in (quoted([column.name]),)
    )


def literal(text: str) -> str:
    """A text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
