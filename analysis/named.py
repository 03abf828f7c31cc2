"""The files of `analysis/sql/`: a header that explains the query, then one SELECT.

    -- purpose: How does accuracy on a benchmark change with training?
    -- grain: a run at one evaluated step
    -- param study text = null: the study; all if null
    -- param benchmark text: validation, test_id or test_ood
    -- param window integer >= 1 = 10: steps a window
    -- column accuracy: right samples [share]

A parameter without `= default` is required; `>= 1` is its least value. Columns are in the order
of the SELECT.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis.errors import UserError

_LINE = re.compile(r"-- (\w+)(?: ([^:]+))?: (.+)")
_PARAMETER = re.compile(r"(\w+) (\S+)(?: >= (\d+))?(?: = (.+))?")

# What queries are about, by words of their names; the first that fits counts.
TOPICS = {
    "Snowball and markers": ("snowball", "marker", "lucky", "validity", "verifier"),
    "Replay and buffer": (
        *("buffer", "replay", "staleness", "selection", "candidates", "lineage", "retired"),
        *("occupancy", "transitions"),
    ),
    "Entropy": ("entropy", "entropies", "token"),
    "Difficulty": ("difficulty", "bucket", "zero_advantage", "map_", "question", "visits"),
    "Accuracy": ("accuracy", "learning", "passk", "gain", "compute", "paired", "compare", "arm_"),
}
OTHER_TOPIC = "Runs and rows"


def topic(name: str) -> str:
    """What a named query is about."""
    for each, words in TOPICS.items():
        if any(word in name for word in words):
            return each
    return OTHER_TOPIC


@dataclass(frozen=True)
class Parameter:
    """A parameter of a named query. `default` counts only where it is not `required`."""

    name: str
    type: str  # a key of TYPES
    default: Any
    required: bool
    meaning: str
    least: int | None = None

    @property
    def shown_default(self) -> str:
        """The default as a header writes it."""
        if self.default is None:
            return "null"
        if isinstance(self.default, list):
            return ",".join(self.default)
        return str(self.default).lower() if isinstance(self.default, bool) else str(self.default)

    def read(self, value: Any) -> Any:
        """The value in the declared type, also from text. None stays None. Raises ValueError."""
        if value is None:
            return None
        value = TYPES[self.type](value)
        if self.least is not None and value < self.least:
            raise ValueError(f"expected at least {self.least}")
        return value


@dataclass(frozen=True)
class NamedQuery:
    """One file of `analysis/sql/`: what it asks, what one row is, parameters and columns."""

    name: str
    purpose: str
    grain: str
    parameters: dict[str, Parameter]
    columns: dict[str, str]  # name -> meaning [unit]
    sql: str


def read_query(path: Path) -> NamedQuery:
    """Read a query file. Raises UserError that names what its header lacks or has wrong."""
    text = path.read_text()
    found: dict[str, dict[str, str]] = {"param": {}, "column": {}}
    header: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith("--"):
            break
        match = _LINE.fullmatch(line)
        kind, what, meaning = match.groups() if match else ("", None, "")
        known = found.get(kind) if what else header if kind in ("purpose", "grain") else None
        key = what or kind
        if known is None or key in known:
            raise UserError(
                f"{path}, line {number}: {line!r} is no line of a header, or one given twice. "
                f"Write `-- purpose: ...`, `-- grain: ...`, `-- param name type = default: ...` "
                f"or `-- column name: ...`."
            )
        known[key] = meaning
    parameters = [_parameter(path, what, meaning) for what, meaning in found["param"].items()]
    used = set(re.findall(r"\$(\w+)", re.sub(r"--.*", "", text)))
    if header.keys() != {"purpose", "grain"} or not found["column"]:
        raise UserError(
            f"{path}: incomplete header: needs `-- purpose:`, `-- grain:` and one `-- column x:` "
            f"a column."
        )
    if used != {parameter.name for parameter in parameters}:
        raise UserError(
            f"{path}: the SQL uses the parameters {sorted(used)}, the header declares "
            f"{sorted(parameter.name for parameter in parameters)}. Make them the same."
        )
    return NamedQuery(
        path.stem,
        header["purpose"],
        header["grain"],
        {parameter.name: parameter for parameter in parameters},
        found["column"],
        text,
    )


def _parameter(path: Path, declared: str, meaning: str) -> Parameter:
    """The parameter that a header declares as `window integer = 10`."""
    match = _PARAMETER.fullmatch(declared)
    name, type_, least, default = match.groups() if match else (declared, "", None, None)
    if type_ not in TYPES:
        raise UserError(
            f"{path}: parameter {declared!r}: write `name type` or `name type = default`; types "
            f"are {', '.join(TYPES)}."
        )
    try:
        value = None if default in (None, "null") else TYPES[type_](default)
    except ValueError as error:
        raise UserError(f"{path}: parameter {name!r}: default {default!r}: {error}") from error
    bound = int(least) if least else None
    return Parameter(name, type_, value, default is None, meaning, bound)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a text")
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [item for part in value.split(",") if (item := part.strip())]
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise ValueError("expected texts, with commas between them")
    return list(value)


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("expected a whole number")
    try:
        number = int(value)
    except ValueError:
        raise ValueError("expected a whole number") from None
    if not -(2**63) <= number < 2**63:
        raise ValueError("expected a whole number of at most 64 bits")
    return number


def _double(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("expected a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("expected a finite number")
    return number


def _boolean(value: Any) -> bool:
    known = {"true": True, "false": False, True: True, False: False}
    key = value.strip().lower() if isinstance(value, str) else value
    if not isinstance(key, str | bool) or key not in known:
        raise ValueError("expected true or false")
    return known[key]


TYPES: dict[str, Callable[[Any], Any]] = {
    "text": _text,
    "text[]": _texts,
    "integer": _integer,
    "double": _double,
    "boolean": _boolean,
}
