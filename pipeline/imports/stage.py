"""First half of an import: rows are read, graded where asked for, and staged as one Parquet file.

Only a batch of rows is held in memory.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from exgrpo.errors import UserError
from exgrpo.grading import Answer, Grader, rules_of
from exgrpo.markers import mark
from exgrpo.row_files import Row
from pipeline.imports.rows import STAGED, Source, Tally, rows_of

BATCH = 256  # rows; a batch of long responses is some megabytes
SCHEMA = STAGED.polars_schema


def stage(source: Source, tally: Tally, right: float, grade: bool, file: Path) -> None:
    """Write the rows of the log to `file`, in their order.

    right: least score that is right. grade: also grade by the gold where the score decides.
    UserError when a row is bad, after all rows were looked at, and when there is none.
    """
    number = 0
    with ExitStack() as stack:
        writer = stack.enter_context(pq.ParquetWriter(file, STAGED.arrow_schema))
        grader = stack.enter_context(Grader()) if source.kind or grade else None
        for batch in _batches(rows_of(source, tally)):
            if tally.bad:
                continue  # nothing will be imported: the rest is only read for more bad rows
            if grader:
                _grade(batch, source.kind, grader)
            for row in batch:
                _settle(row, right)
                row["row"] = number
                number += 1
            writer.write_table(_frame(batch))
    tally.check(source.path)
    if not number:
        rest = "".join(f"\n  left out: {each}" for each in tally.left_out)
        raise UserError(
            f"{source.path}: the file is empty: it holds no row that counts. Give one JSON object "
            f"a line.{rest}"
        )


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


def _grade(rows: list[Row], kind: str | None, grader: Grader) -> None:
    """Our verdict on each row that has a gold and a response.

    With a kind it decides what is right; without one it stands beside the recorded score.
    """
    able = [row for row in rows if row.get("gold") and row.get("response") is not None]
    rules = rules_of(kind or "boxed")
    verdicts = grader.grade_all([Answer(row["gold"], row["response"], rules) for row in able])
    for row, verdict in zip(able, verdicts, strict=True):
        row["correct" if kind else "ours"] = verdict.correct
        row["extracted"], row["format_ok"] = verdict.extracted, verdict.format_ok


def _settle(row: Row, right: float) -> None:
    """What is right by the score, where nothing else says so; and the markers of the response."""
    score = row.get("score")
    if "correct" not in row and score is not None:
        row["correct"] = score >= right
    if (response := row.get("response")) is not None:
        markers = mark("import", row.get("text") or "", response)
        row.setdefault("code", markers.code)
        row.setdefault("repetition", markers.repetition)


def _frame(rows: list[Row]) -> pa.Table:
    columns = {name: [row.get(name) for row in rows] for name in SCHEMA}
    return pl.DataFrame(columns, schema=SCHEMA).to_arrow().cast(STAGED.arrow_schema)
