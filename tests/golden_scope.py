"""Which runs of the golden lake a query is asked about, and the rows that then count."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from golden_lake import Row, rows


@dataclass(frozen=True)
class Scope:
    """`asked`: the parameters `study` and `run`; `runs`: the runs that these mean, by id."""

    name: str
    asked: dict[str, Any]
    runs: dict[str, Row]

    def __str__(self) -> str:
        return self.name

    def rows(self, table: str) -> Iterator[Row]:
        """The table's rows of these runs, each with study, arm and seed of its run."""
        for row in rows(table):
            if run := self.runs.get(row["run"]):
                yield row | {name: run[name] for name in ("study", "arm", "seed")}


def _scopes() -> list[Scope]:
    runs = {row["run"]: row for row in rows("runs")}
    study = {run: row for run, row in runs.items() if row["study"] == "golden"}
    picked = {run: row for run, row in runs.items() if row["seed"] != 1}
    return [
        Scope("all", {}, runs),
        Scope("a study", {"study": "golden"}, study),
        Scope("some runs", {"run": list(picked)}, picked),
    ]


SCOPES = _scopes()


def by(found: Iterable[Row], *names: str) -> dict[tuple[Any, ...], list[Row]]:
    """The rows, grouped by the values of these columns."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in found:
        groups[tuple(row[name] for name in names)].append(row)
    return groups


def share(values: Iterable[Any]) -> float | None:
    """The share of true ones, or the mean, of the known values; None where none is known."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def first_step(step: int, window: int) -> int:
    """The first step of the window that a step lies in: windows start at 1, 1 + window, .."""
    return next(start for start in range(1, step + 1, window) if step < start + window)
