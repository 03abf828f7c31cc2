"""The trajectory browser's questions: one page of filtered trajectories, and one whole one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import duckdb
import polars as pl

from analysis.errors import UserError
from analysis.paging import Order, Selection, rows_of_page
from analysis.queries import explain
from exgrpo.tables import TRAJECTORIES

RUN_COLUMNS = ("study", "arm", "seed")
Marker = Literal["code", "shortcut", "repetition", "step_errors"]
SORTABLE = (*TRAJECTORIES.names, *RUN_COLUMNS)


@dataclass(frozen=True)
class Filters:
    """Which trajectories to show, and in which order. None or empty: no such filter.

    `bucket` holds numbers of right trajectories in the group (k); `age` is the step less the birth
    step; of `markers` all must be there; `text` is found anywhere in the response, in any case, and
    is a regular expression (RE2) if `regex`. A trajectory without a value never passes a filter on
    it.
    """

    study: str | None = None
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    run: str | None = None
    step_min: int | None = None
    step_max: int | None = None
    bucket: tuple[int, ...] = ()
    replayed: bool | None = None
    correct: bool | None = None
    chain_valid: bool | None = None
    finish: str | None = None
    markers: tuple[Marker, ...] = ()
    length_min: int | None = None
    length_max: int | None = None
    age_min: int | None = None
    age_max: int | None = None
    entropy_min: float | None = None
    entropy_max: float | None = None
    text: str | None = None
    regex: bool = False
    question: str | None = None
    sort: str = "step"
    descending: bool = False


@dataclass(frozen=True)
class Page:
    """Some rows of `trajectories` with study, arm and seed; `total` is the number of all."""

    frame: pl.DataFrame
    total: int


_CONDITIONS = {
    "study": "trajectories.run IN (SELECT run FROM runs WHERE study = $study)",
    "arms": "trajectories.run IN (SELECT run FROM runs WHERE list_contains($arms, arm))",
    "seeds": "trajectories.run IN (SELECT run FROM runs WHERE list_contains($seeds, seed))",
    "run": "trajectories.run = $run",
    "step_min": "trajectories.step >= $step_min",
    "step_max": "trajectories.step <= $step_max",
    "bucket": "list_contains($bucket, trajectories.group_successes)",
    "replayed": "trajectories.replayed = $replayed",
    "correct": "trajectories.correct = $correct",
    "chain_valid": "trajectories.chain_valid = $chain_valid",
    "finish": "trajectories.finish = $finish",
    "markers": "list_has_all(list_filter(['code', 'shortcut', 'repetition', 'step_errors'], "
    "lambda m, i: [code, shortcut, repetition, step_errors > 0][i]), $markers)",
    "length_min": "trajectories.length >= $length_min",
    "length_max": "trajectories.length <= $length_max",
    "age_min": "trajectories.step - trajectories.birth_step >= $age_min",
    "age_max": "trajectories.step - trajectories.birth_step <= $age_max",
    "entropy_min": "trajectories.mean_entropy >= $entropy_min",
    "entropy_max": "trajectories.mean_entropy <= $entropy_max",
    "text": "CASE WHEN $regex THEN regexp_matches(trajectories.response, $text, 'i') "
    "ELSE contains(lower(trajectories.response), lower($text)) END",
    "question": "trajectories.question = $question",
}

_ROWS = f"""
    SELECT trajectories.*, {", ".join(f"runs.{name}" for name in RUN_COLUMNS)}
    FROM trajectories JOIN runs USING (run)
"""


def page(connection: duckdb.DuckDBPyConnection, filters: Filters, offset: int, size: int) -> Page:
    """Rows `offset` .. `offset + size` of the filtered trajectories, and how many there are.

    Ties keep the order of the log; an offset beyond the end gives no rows. Raises UserError on a
    sort column that does not exist, at the time limit, and on a catalog that cannot be read.
    """
    if filters.sort not in SORTABLE:
        raise UserError(f"cannot sort by {filters.sort!r}. Columns: {', '.join(SORTABLE)}.")
    table = "runs" if filters.sort in RUN_COLUMNS else "trajectories"
    order = Order(table, filters.sort, filters.descending)
    with _asking(connection) as cursor:
        rows, total = rows_of_page(_selection(cursor, filters), order, offset, size)
        # Looked up by the ids of a subquery: a list of them would be tried on every row.
        sql = f"{_ROWS} WHERE trajectories.rowid IN (SELECT unnest($rows::BIGINT[])) {order.sql}"
        frame = cursor.sql(sql, params={"rows": rows}).pl()
    return Page(frame, total)


def trajectory(connection: duckdb.DuckDBPyConnection, id: str) -> pl.DataFrame:
    """The one row of a trajectory with study, arm, seed, tokenizer, question text, prompt, gold.

    No row when there is no such trajectory. Raises UserError as `page` does.
    """
    sql = f"""
        SELECT found.*, runs.tokenizer, q.text, q.prompt, q.gold
        FROM ({_ROWS} WHERE trajectory = $id) AS found JOIN runs USING (run)
        LEFT JOIN questions AS q USING (question)
        ORDER BY q.split = 'train' DESC
        LIMIT 1
    """
    with _asking(connection) as cursor:
        return cursor.sql(sql, params={"id": id}).pl()


@contextmanager
def _asking(connection: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    with connection.cursor() as cursor:
        try:
            yield cursor
        except duckdb.Error as error:
            raise UserError(f"trajectories: {explain(error)}") from error


def _selection(cursor: duckdb.DuckDBPyConnection, filters: Filters) -> Selection:
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name in _CONDITIONS
        if (value := getattr(filters, name)) not in (None, (), "")
    }
    conditions = tuple(_CONDITIONS[name] for name in values)
    return Selection(
        cursor, conditions, values | ({"regex": filters.regex} if "text" in values else {})
    )
