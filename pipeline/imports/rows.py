"""What a reader of foreign logs yields, and what it keeps count of while it reads.

A row is a dictionary of columns of `STAGED`; a missing one is null. Values keep the type that
they have in the file: text stays text, and what does not fit the declared type is an error.
"""

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from exgrpo.errors import UserError
from exgrpo.golds import NoGoldError
from exgrpo.questions import question_id
from exgrpo.row_files import Row, read_rows
from exgrpo.tables import TOKENS, TRAJECTORIES
from exgrpo.tables.schema import BOOL, FLOAT, INT, TEXT, Column, Table

Numbers = Sequence[float] | None

ONE_RUN = "(one run an import)"  # the column of a key that tells runs apart

MOST_OTHERS = 5  # files that one message lists
MOST_BAD_ROWS = 10  # bad rows that one message lists

# What a foreign log cannot know, or what its rows together tell: the importer fills these.
WORKED_OUT = {
    *("trajectory", "run", "group", "slot", "experiential", "replayed", "source"),
    *("birth_step", "bucket_drawn", "group_successes", "group_size", "bucket", "difficulty"),
}
OWN = tuple(column for column in TRAJECTORIES.columns if column.name not in WORKED_OUT)
LISTS = tuple(column for column in TOKENS.columns if column.name not in TRAJECTORIES.names)

STAGED = Table(
    "staged",
    "a response, as read",
    ("row",),
    (
        Column("row", INT, "", "place among all rows read, from 0"),
        Column("place", TEXT, "", "the file and line or row that it comes from"),
        Column("group_key", TEXT, "", "what the log calls the group, if it does"),
        Column("text", TEXT, "", "the question as asked"),
        Column("prompt", TEXT, "", "the prompt as rendered for the model"),
        Column("gold", TEXT, "", "the right answer"),
        Column("score", FLOAT, "", "the recorded score or reward"),
        Column("recorded", BOOL, "", "a recorded label beside our grade"),
        Column("ours", BOOL, "", "our grade beside the recorded score"),
        *OWN,
        *LISTS,
    ),
)


@dataclass
class Tally:
    """What became of the keys and rows of a log. values: non-null values by their key."""

    values: Counter[str] = field(default_factory=Counter)
    left_out: list[str] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)
    bad_rows: int = 0
    without_gold: int = 0

    def reject(self, reason: str) -> None:
        """Note a row that cannot be used; the first ten are kept."""
        self.bad_rows += 1
        if len(self.bad) < MOST_BAD_ROWS:
            self.bad.append(reason)

    def leave_out(self, reason: str) -> None:
        """Note a row without a gold; the first ten by name, the others by number."""
        self.without_gold += 1
        if self.without_gold <= MOST_BAD_ROWS:
            self.left_out.append(reason)
        else:
            self.notes["more rows whose gold is null, left out too"] += 1

    def check(self, path: Path) -> None:
        """Raise UserError that lists the bad rows, if there are any."""
        if not self.bad:
            return
        shown = "\n".join(f"  {line}" for line in self.bad)
        more = self.bad_rows - len(self.bad)
        also = f"\n  and {more} more" if more else ""
        raise UserError(f"{path}: nothing was imported: {self.bad_rows} bad rows:\n{shown}{also}")

    def count(self, row: Row, prefix: str = "") -> None:
        """Count the values of a row by key; the keys of an object within have dots."""
        for key, value in row.items():
            if isinstance(value, dict) and value:
                self.count(value, f"{prefix}{key}.")
            else:
                empty = isinstance(value, list) and all(item is None for item in value)
                self.values[prefix + key] += value is not None and not empty

    def occurs(self, key: str) -> bool:
        """Whether the log has a value of the key, or of one within it; `*.x` is x of any key."""
        return any(
            count > 0
            and (
                name == key
                or name.startswith(f"{key}.")
                or (key[0] == "*" and name.endswith(key[1:]))
            )
            for name, count in self.values.items()
        )

    def dropped(self, keys: dict[str, str]) -> dict[str, int]:
        """Non-null values of the keys that became none of our columns; `*.x` is x of any key."""

        def used(key: str) -> bool:
            parents = [key[:place] for place, letter in enumerate(key) if letter == "."]
            return any(name in keys for name in (key, *parents, f"*.{key.rpartition('.')[2]}"))

        return {key: count for key, count in self.values.items() if not used(key)}


@dataclass(frozen=True)
class Place:
    """Where a row stands, for messages, and the tally to note what it leaves out."""

    where: str
    file: Path
    tally: Tally

    def error(self, key: str, value: object, remedy: str) -> UserError:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        return UserError(f"{self.where}: key `{key}` is {shown}. {remedy}")


Reader = Callable[[Row, Place], list[Row]]


@dataclass(frozen=True)
class Source:
    """A foreign log that was recognised. keys: their key -> our column, for the summary.

    kind: how our grader reads the responses (`exgrpo.grading`), where it decides what is right;
    None where the recorded score does. left_out: what was left out before reading.
    """

    format: str
    path: Path
    files: Sequence[Path]
    keys: dict[str, str]
    read: Reader
    kind: str | None = None
    left_out: tuple[str, ...] = ()


def rows_of(source: Source, tally: Tally) -> Iterator[Row]:
    """Every row of the log, in the order of its files; bad ones are noted in the tally."""
    tally.left_out += source.left_out
    runs: set[str] = set()
    for file in source.files:
        label = "" if file == source.path else f"{file.relative_to(source.path)}: "
        for where, row in read_rows(file, label, tally.reject, tally.left_out.append):
            tally.count(row)
            _check_one_run(source, row, runs)
            try:
                yield from (
                    {**each, "place": where} for each in source.read(row, Place(where, file, tally))
                )
            except NoGoldError as reason:
                tally.leave_out(str(reason))
            except UserError as error:
                tally.reject(str(error))


def others(folder: Path, files: Sequence[Path]) -> tuple[str, ...]:
    """A line on what else lies in the folder of a log; none if there is nothing."""
    mine = {file.name for file in files}
    names = sorted(each.name for each in folder.iterdir() if each.name not in mine)
    if not names:
        return ()
    more = f" and {len(names) - MOST_OTHERS} more" if len(names) > MOST_OTHERS else ""
    return (f"{', '.join(names[:MOST_OTHERS])}{more}: no files of this log by their names",)


def _check_one_run(source: Source, row: Row, runs: set[str]) -> None:
    told = [key for key, column in source.keys.items() if column == ONE_RUN]
    runs.update(str(row[key]) for key in told if row.get(key) is not None)
    if len(runs) > 1:
        raise UserError(
            f"{source.path}: holds several runs: {', '.join(sorted(runs))}. Their groups must not "
            f"mix: split it by run and import each part under its own --name."
        )


def asked(text: str | None, **columns: Any) -> Row:
    """A row for a question that is known by its text."""
    return {"question": question_id(text or ""), "text": text, **columns}


def require(row: Row, keys: Sequence[str], at: Place) -> None:
    """UserError when keys of the format are missing."""
    if missing := [key for key in keys if key not in row]:
        raise UserError(
            f"{at.where}: misses the keys {', '.join(missing)}; it has {', '.join(row) or 'none'}. "
            f"Add them or remove the row."
        )


def as_text(value: object, key: str, at: Place) -> str | None:
    """Text as it is; any other JSON value as exact JSON text; None for null. UserError on others"""
    if value is None or isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:  # dates and bytes of a Parquet file, NaN
        raise at.error(key, value, "Give text, or another value that JSON has.") from error


def text(row: Row, key: str, at: Place) -> str:
    """Text that must be there. UserError on null, blank, or another type."""
    value = row[key]
    if not isinstance(value, str) or not value.strip():
        raise at.error(key, value, "Give text, or remove the row.")
    return value


def number(value: object, key: str, at: Place) -> float | None:
    """A finite number or null. UserError on others, and on whole numbers that a float rounds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise at.error(key, value, "Give a number or null.")
    fits = abs(value) <= sys.float_info.max  # false for NaN too
    if not fits or (isinstance(value, int) and int(float(value)) != value):
        raise at.error(key, value, "Give a finite number that a 64-bit float holds, or null.")
    return float(value)


def whole(value: object, key: str, at: Place) -> int | None:
    """A whole number of 64 bits or null. UserError on others."""
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():  # pandas writes whole numbers so
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise at.error(key, value, "Give a whole number of at most 64 bits, or null.")
    return value


def step_of(value: object, key: str, at: Place) -> int:
    """A step: a whole number from 0, also written as text. UserError on others."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    step = whole(value, key, at)
    if step is None or step < 0:
        raise at.error(key, value, "Give a whole number from 0.")
    return step


def truth(value: object, key: str, at: Place) -> bool | None:
    """True, false or null. UserError on others."""
    if value is not None and not isinstance(value, bool):
        raise at.error(key, value, "Give true, false or null.")
    return value


def measures(lists: Mapping[str, Any], at: Place, ratios: Numbers = None) -> Row:
    """Length, means and sums over the tokens of one response; null where a list is missing.

    lists: columns of `tokens`. ratios: policy / behaviour policy, one a token. A sum that no float
    holds is null and noted.
    """
    entropies: Numbers = lists.get("entropies")
    most = max(map(abs, ratios or ()), default=0)  # the size has no unit: no square overflows
    shares = [ratio / most for ratio in ratios or ()] if most else []
    token_ids = lists.get("token_ids")
    found: dict[str, float | None] = {
        "behaviour_nll": mean(lists.get("behaviour_logprobs"), -1.0),
        "nll": mean(lists.get("logprobs"), -1.0),
        "mean_entropy": mean(entropies),
        "summed_entropy": None if entropies is None else sum(map(float, entropies)),
        "ratio_mean": mean(ratios),
        "ratio_min": min(ratios) if ratios else None,
        "ratio_max": max(ratios) if ratios else None,
        "ratio_ess": sum(shares) ** 2 / sum(s**2 for s in shares) / len(shares) if shares else None,
    }
    for name, value in found.items():
        if value is not None and not math.isfinite(value):
            at.tally.notes[f"rows whose `{name}` no float holds, so that it stays empty"] += 1
            found[name] = None
    return {"length": None if token_ids is None else len(token_ids), **found}


def mean(values: Numbers, factor: float = 1.0) -> float | None:
    return factor * sum(map(float, values)) / len(values) if values else None
