"""One page of millions of rows in order, without sorting millions.

Counting is cheap, sorting is not. So the rows are counted by the value that they are sorted by,
and only those whose value the page touches are sorted. Where these are still many, all of one
value, they are counted once more by run, which comes next in the order.
"""

from dataclasses import dataclass, replace
from typing import Any

import duckdb
import polars as pl

from analysis.sql_types import quoted
from exgrpo.tables import Table
from exgrpo.tables.schema import FLOAT

FEW_ROWS = 200_000  # that are sorted without a wait

# Texts of which nearly every row has one of its own: counting them saves nothing.
MANY_TEXTS = ("trajectory", "source", "response")


@dataclass(frozen=True)
class Order:
    """By one column of a table or of its runs; nulls last, ties in the order of the log.

    `made`: what the column is made of, in SQL, where neither has it.
    """

    table: Table
    name: str
    descending: bool
    made: str | None = None

    @property
    def of_run(self) -> bool:
        return self.made is None and self.name not in self.table.names

    @property
    def column(self) -> str:
        if self.made is not None:
            return f"({self.made})"
        return f"{'runs' if self.of_run else self.table.name}.{quoted([self.name])}"

    @property
    def coarse(self) -> str:
        """A value that rises with the column's and that many rows share."""
        if self.name in MANY_TEXTS:
            return "0"
        is_float = self.table.polars_schema.get(self.name) == FLOAT
        return f"floor(256 * {self.column})" if is_float else self.column

    @property
    def direction(self) -> str:
        return "DESC NULLS LAST" if self.descending else "ASC NULLS LAST"

    @property
    def sql(self) -> str:
        log = ", ".join(f"{self.table.name}.{quoted([name])}" for name in self.table.order)
        return f"ORDER BY {self.column} {self.direction}, {log}"


@dataclass(frozen=True)
class Selection:
    """The rows of a table that meet all conditions; `values` are those of their parameters."""

    cursor: duckdb.DuckDBPyConnection
    conditions: tuple[str, ...]
    values: dict[str, Any]

    def ask(self, columns: str, order: Order, rest: str) -> pl.DataFrame:
        """SELECT these columns; the run of each is joined only where the order needs it."""
        source = order.table.name + (" JOIN runs USING (run)" if order.of_run else "")
        where = f"WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        sql = f"SELECT {columns} FROM {source} {where} {rest}"
        return self.cursor.sql(sql, params=self.values).pl()

    def also(self, condition: str, **values: Any) -> "Selection":
        conditions = (condition, *self.conditions)  # cheaper than a search of texts
        return replace(self, conditions=conditions, values=self.values | values)


def rows_of_page(
    selection: Selection, order: Order, offset: int, size: int
) -> tuple[list[int], int]:
    """The row ids of places `offset` .. `offset + size` in the order, and how many rows there are.

    The ids are in no order. An offset beyond the end gives none.
    """
    counts = selection.ask(
        f"{order.coarse} AS value, count(*) AS rows",
        order,
        f"GROUP BY value ORDER BY value {order.direction}",
    )
    total = int(counts["rows"].sum())
    near, start = _touched(counts, offset, size)
    if near.is_empty():
        return [], total
    selection = _between(selection, order.coarse, near["value"], order)
    if near["rows"].sum() > FEW_ROWS and order.name not in MANY_TEXTS:
        counts = selection.ask(
            f"{order.column} AS value, run, count(*) AS rows",
            order,
            f"GROUP BY ALL ORDER BY value {order.direction}, run",
        )
        near, start = _touched(counts, start, size)
        selection = _between(selection, order.column, near["value"], order)
        selection = selection.also(
            f"NOT ({order.column} IS NOT DISTINCT FROM $first AND run < $first_run)",
            first=near["value"][0],
            first_run=near["run"][0],
        ).also(
            f"NOT ({order.column} IS NOT DISTINCT FROM $last AND run > $last_run)",
            last=near["value"][-1],
            last_run=near["run"][-1],
        )
    rows = selection.ask(
        f"{order.table.name}.rowid AS id", order, f"{order.sql} LIMIT {size:d} OFFSET {start:d}"
    )
    return rows["id"].to_list(), total


def _touched(counts: pl.DataFrame, offset: int, size: int) -> tuple[pl.DataFrame, int]:
    """The values, in order, that rows `offset` .. `offset + size` have; the offset among them."""
    counts = counts.with_columns(before=pl.col("rows").cum_sum() - pl.col("rows"))
    ends = pl.col("before") + pl.col("rows")
    near = counts.filter((ends > offset) & (pl.col("before") < offset + size))
    return near, 0 if near.is_empty() else offset - int(near["before"][0])


def _between(selection: Selection, expression: str, values: pl.Series, order: Order) -> Selection:
    """Only rows whose value is one of these or lies between the first and the last of them."""
    known = values.drop_nulls()
    if known.is_empty():
        return selection.also(f"{expression} IS NULL")
    ends = (known[-1], known[0]) if order.descending else (known[0], known[-1])
    number = len(selection.conditions)  # names each parameter once
    low, high = f"low_{number}", f"high_{number}"
    condition = f"{expression} BETWEEN ${low} AND ${high}"
    if values.null_count():
        condition = f"({condition} OR {expression} IS NULL)"
    return selection.also(condition, **dict(zip((low, high), ends, strict=True)))
