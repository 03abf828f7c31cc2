"""What the dashboard asks of the catalog besides rows: its tables, and a trajectory's tokens."""

from pathlib import Path

import duckdb
import polars as pl

from analysis.catalog import lake_of
from analysis.sql_types import quoted
from analysis.storage import open_lake
from analysis.tokens import read_tokens

MOST_VALUES = 100
FIRST_ROWS = 100


def schema(connection: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    """One row a column of the catalog: table, grain, rows, column, type, meaning with its unit."""
    tables = connection.table_function("duckdb_tables").pl()
    columns = connection.table_function("duckdb_columns").pl().filter(~pl.col("internal"))
    grains = tables.select("table_name", grain="comment", rows="estimated_size")
    return columns.join(grains, on="table_name", maintain_order="left").select(
        table="table_name",
        grain="grain",
        rows="rows",
        column="column_name",
        type=pl.col("data_type").str.to_lowercase(),
        meaning="comment",
    )


def tokens(
    connection: duckdb.DuckDBPyConnection, folder: Path, run: str, trajectory: str
) -> pl.DataFrame:
    """The tokens of a trajectory, see `read_tokens`; `folder`: where the catalog lies."""
    return read_tokens(open_lake(lake_of(connection), folder), run, trajectory)


def first_rows(table: str) -> str:
    """SQL of the first rows of a table."""
    return f"SELECT *\nFROM {quoted([table])}\nLIMIT {FIRST_ROWS}"


def frequent_values(table: str, column: str) -> str:
    """SQL of the values of a column, the most frequent first."""
    return (
        f"SELECT {quoted([column])}, count(*) AS rows\nFROM {quoted([table])}\n"
        f"GROUP BY ALL\nORDER BY rows DESC, 1\nLIMIT {MOST_VALUES}"
    )
