"""What a table and a column are, and the columns that most tables share."""

from dataclasses import dataclass

import polars as pl
import pyarrow as pa

SCHEMA_VERSION = 4

ColumnType = pl.DataType | type[pl.DataType]

TEXT, INT, FLOAT, BOOL = pl.String, pl.Int64, pl.Float64, pl.Boolean
INTS, FLOATS = pl.List(pl.Int32), pl.List(pl.Float32)

_ARROW = {
    TEXT: pa.string(),
    INT: pa.int64(),
    FLOAT: pa.float64(),
    BOOL: pa.bool_(),
    INTS: pa.list_(pa.int32()),
    FLOATS: pa.list_(pa.float32()),
}


@dataclass(frozen=True)
class Column:
    """One column: its type, its unit ("" where it has none) and what it means."""

    name: str
    type: ColumnType
    unit: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One table: its grain (what one row is), its sort order and its columns."""

    name: str
    grain: str
    order: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    @property
    def polars_schema(self) -> pl.Schema:
        return pl.Schema({column.name: column.type for column in self.columns})

    @property
    def arrow_schema(self) -> pa.Schema:
        fields = [pa.field(column.name, _ARROW[column.type]) for column in self.columns]
        return pa.schema(fields, metadata={"schema_version": str(SCHEMA_VERSION)})


RUN_ID = Column("run", TEXT, "", "run id: arm, seed and the hash of the resolved settings")
STEP = Column("step", INT, "step", "training step, from 1; 0 is the base model")
QUESTION_ID = Column("question", TEXT, "", "question id: hash of its text")
TRAJECTORY_ID = Column("trajectory", TEXT, "", "trajectory id: run:step:group:slot")
GROUP = Column("group", INT, "", "place of the question's group in the batch, from 0")
