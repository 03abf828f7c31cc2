"""The trajectory browser's questions: one page of filtered trajectories, and one whole one."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import polars as pl

from analysis.errors import UserError
from analysis.queries import explain
from exgrpo.tables import TRAJECTORIES

RUN_COLUMNS = ("study", "arm", "seed")
SORTABLE = (*TRAJECTORIES.names, *RUN_COLUMNS)


@dataclass(frozen=True)
class Filters:
    """Which trajectories to show, and in which order. None or empty: no such filter.

    `bucket` holds numbers of right trajectories in the group (k); `text` is found anywhere in
    the response, in any case; a trajectory without a value never passes a filter on it.
    """

    study: str | None = None
    arms: tuple[str, ...] = ()
    run: str | None = None
    step_min: int | None = None
    step_max: int | None = None
    bucket: tuple[int, ...] = ()
    replayed: bool | None = None
    correct: bool | None = None
    chain_valid: bool | None = None
    entropy_min: float | None = None
    entropy_max: float | None = None
    text: str | None = None
    question: str | None = None
    sort: str = "step"
    descending: bool = False


@dataclass(frozen=True)
class Page:
    """Some rows of `trajectories` with study, arm and seed; `total` is the number of all."""

    frame: pl.DataFrame
    total: int


_CONDITIONS = {
    "study": "runs.study = $study",
    "arms": "list_contains($arms, runs.arm)",
    "run": "t.run = $run",
    "step_min": "t.step >= $step_min",
    "step_max": "t.step <= $step_max",
    "bucket": "list_contains($bucket, t.group_successes)",
    "replayed": "t.replayed = $replayed",
    "correct": "t.correct = $correct",
    "chain_valid": "t.chain_valid = $chain_valid",
    "entropy_min": "t.mean_entropy >= $entropy_min",
    "entropy_max": "t.mean_entropy <= $entropy_max",
    "text": "contains(lower(t.response), lower($text))",
    "question": "t.question = $question",
}

_FROM = "FROM trajectories AS t JOIN runs USING (run)"


def page(connection: duckdb.DuckDBPyConnection, filters: Filters, offset: int, size: int) -> Page:
    """Rows `offset` .. `offset + size` of the filtered trajectories, and how many there are.

    Ties keep the order of the log; an offset beyond the end gives no rows. Raises UserError on a
    sort column that does not exist, at the time limit, and on a catalog that cannot be read.
    """
    if filters.sort not in SORTABLE:
        raise UserError(f"cannot sort by {filters.sort!r}. Columns: {', '.join(SORTABLE)}.")
    where, values = _where(filters)
    direction = "DESC" if filters.descending else "ASC"
    order = f'"{filters.sort}" {direction} NULLS LAST, run, step, "group", slot'
    with _asking(connection) as cursor:
        total = cursor.execute(f"SELECT count(*) {_FROM} {where}", values).fetchall()[0][0]
        frame = cursor.sql(
            f"SELECT t.*, {_run_columns()} {_FROM} {where} "
            f"ORDER BY {order} LIMIT $size OFFSET $offset",
            params={**values, "size": size, "offset": min(offset, total)},
        ).pl()
    return Page(frame, total)


def trajectory(connection: duckdb.DuckDBPyConnection, id: str) -> pl.DataFrame:
    """The one row of a trajectory with study, arm, seed, tokenizer, question text, prompt, gold.

    No row when there is no such trajectory. Raises UserError as `page` does.
    """
    sql = f"""
        SELECT t.*, {_run_columns()}, runs.tokenizer, q.text, q.prompt, q.gold
        {_FROM}
        LEFT JOIN questions AS q USING (question)
        WHERE trajectory = $id
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


def _where(filters: Filters) -> tuple[str, dict[str, Any]]:
    values = {
        name: list(value) if isinstance(value, tuple) else value
        for name in _CONDITIONS
        if (value := getattr(filters, name)) not in (None, (), "")
    }
    conditions = [_CONDITIONS[name] for name in values]
    return ("WHERE " + " AND ".join(conditions) if conditions else ""), values


def _run_columns() -> str:
    return ", ".join(f"runs.{name}" for name in RUN_COLUMNS)
