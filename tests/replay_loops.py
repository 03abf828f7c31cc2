"""Plain Python over logged rows, for the tests of the replay queries: nothing in here is SQL.

The exception is `made_catalog`, which puts rows made by hand where the queries look for them.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import duckdb
import polars as pl
import pytest

import analysis
from analysis.catalog_build import MACROS
from analysis.sql_types import declared
from exgrpo.tables import TABLES, TOKENS

DERIVED = Path(analysis.__file__).parent / "derived"

Row = dict[str, Any]
Rows = list[Row]

RUN = {"run": "r", "study": "s", "arm": "a", "seed": 0}


@dataclass(frozen=True)
class Visit:
    """A group: the trajectories of one question in the batch of one step, by slot."""

    step: int
    group: int
    rows: Rows

    @property
    def first(self) -> Row:
        return self.rows[0]

    @property
    def fresh(self) -> Rows:
        return [row for row in self.rows if not row["replayed"]]

    @property
    def replays(self) -> Rows:
        return [row for row in self.rows if row["replayed"]]

    @property
    def share(self) -> float | None:
        """Right answers of the graded fresh rollouts."""
        return mean_or_none(row["correct"] for row in self.fresh)


@dataclass(frozen=True)
class History:
    """All visits of one question in one run, in order."""

    study: str
    arm: str
    seed: int | None
    run: str
    question: str
    visits: list[Visit]

    def successes_before(self, place: int) -> int | None:
        """The bucket that a visit was drawn from, else k of the visit before."""
        drawn: int | None = self.visits[place].first["bucket_drawn"]
        if drawn is not None or place == 0:
            return drawn
        return self.visits[place - 1].first["group_successes"]

    def bucket(self, place: int) -> int | None:
        """The bucket before a visit: the same, but None if the visit before had k = 0 or K."""
        if place and self.visits[place].first["bucket_drawn"] is None:
            before = self.visits[place - 1].first
            if not 0 < before["group_successes"] < before["group_size"]:
                return None
        return self.successes_before(place)


def histories(trajectories: Rows, runs: Rows) -> Iterator[History]:
    known = {row["run"]: row for row in runs}
    groups = defaultdict(list)
    for row in trajectories:
        groups[row["run"], row["question"], row["step"], row["group"]].append(row)
    visits = defaultdict(list)
    for run, question, step, group in sorted(groups):
        rows = sorted(groups[run, question, step, group], key=lambda row: row["slot"])
        visits[run, question].append(Visit(step, group, rows))
    for (run, question), found in visits.items():
        names = (known[run][name] for name in ("study", "arm", "seed"))
        yield History(*names, run, question, found)


def marked(row: Row, marker: str) -> bool | None:
    """Whether a trajectory has the marker; None: not known."""
    if marker == "flawed":
        return None if row["chain_valid"] is None else not row["chain_valid"]
    value: bool | None = row[marker]
    return value


def difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """The mean of those that are not None; None if there is none."""
    found = [value for value in values if value is not None]
    return mean(found) if found else None


def assert_same(frame: pl.DataFrame, expected: Rows, *keys: str) -> None:
    """The frame has these rows, ordered by `keys` with nulls last, and these columns."""
    assert expected
    ordered = sorted(expected, key=lambda row: tuple((row[key] is None, row[key]) for key in keys))
    assert frame.columns == list(ordered[0])
    assert frame.select(keys).to_dicts() == [{key: row[key] for key in keys} for row in ordered]
    for found, row in zip(frame.to_dicts(), ordered, strict=True):
        assert found == pytest.approx(row), {key: row[key] for key in keys}


def start_of(step: int, window: int) -> int:
    """The first step of the window that the step lies in."""
    return (step - 1) // window * window + 1


def made(step: int, slot: int = 0, **columns: Any) -> Row:
    """A right fresh trajectory of question `q` in run `r`, but for the columns given."""
    row = {"run": "r", "step": step, "group": 0, "slot": slot, "question": "q", "correct": True}
    row |= {"replayed": False, "code": False, "repetition": False, "experiential": False}
    row |= {"trajectory": f"r:{step}:0:{slot}", "response": "x = 1 + 2"}
    return row | columns


def replay_of(source: str, step: int, **columns: Any) -> Row:
    more: Row = {"replayed": True, "source": source, "bucket_drawn": 2, "experiential": True}
    return made(step) | more | columns


def made_catalog(**tables: Rows) -> duckdb.DuckDBPyConnection:
    """A catalog in memory with these rows; what a row does not name is null."""
    connection = duckdb.connect()
    for table in TABLES.values():
        if table is TOKENS:
            continue
        connection.execute(f"create table {table.name} ({declared(table)})")
        if rows := tables.get(table.name):
            connection.register("made", pl.DataFrame(rows, schema=table.polars_schema))
            connection.execute(f"insert into {table.name} from made")
    visits = (DERIVED / "visits.sql").read_text()
    connection.execute(f"insert into visits by name {visits}")
    connection.execute(MACROS)
    return connection
