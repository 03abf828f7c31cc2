"""Any JSONL or Parquet log: a mapping file says which of its keys is which of our columns.

columns: {step: iteration, question: item.problem, response: output.text, score: reward}
constants: {finish: stop}
right: [pass, true]      # values of the key of `correct` that count as right
kind: boxed              # how responses are graded where neither score nor correct is mapped
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from exgrpo.errors import UserError
from exgrpo.golds import gold_of
from exgrpo.grading import KINDS
from exgrpo.row_files import Row, natural
from exgrpo.tables.schema import BOOL, FLOAT, FLOATS, INT, INTS, TEXT, ColumnType
from pipeline.imports.rows import (
    LISTS,
    OWN,
    Place,
    Source,
    as_text,
    asked,
    measures,
    number,
    others,
    step_of,
    truth,
    whole,
)

COLUMNS: dict[str, ColumnType] = {
    **{column.name: column.type for column in (*OWN, *LISTS)},
    "group": TEXT,
    "prompt": TEXT,
    "gold": TEXT,
    "score": FLOAT,
}
_LISTS = [column.name for column in LISTS]
_RENAMED = {"group": "group_key"}
_SECTIONS = ("columns", "constants", "right", "kind")


def find(path: Path, mapping: Path) -> Source:
    """The log of a file or of a folder's JSONL and Parquet files. UserError on a bad mapping."""
    content = _load(mapping)
    columns, constants = (
        _section(content, "columns", mapping),
        _section(content, "constants", mapping),
    )
    _check(columns, constants, content, mapping)
    suffixes = (".jsonl", ".parquet")
    files = (
        sorted((each for each in path.iterdir() if each.suffix in suffixes), key=natural)
        if path.is_dir()
        else [path]
    )
    if not files:
        raise UserError(f"{path}: holds no .jsonl and no .parquet file.")
    left_out = others(path, files) if path.is_dir() else ()
    graded = not {"score", "correct"} & columns.keys()
    right = content.get("right")

    def read(row: Row, at: Place) -> list[Row]:
        values = {ours: _follow(row, key) for ours, key in columns.items()} | constants
        keys = columns | {name: name for name in constants}
        read_row = {
            ours: _right(value, right, keys[ours], at)
            if ours == "correct" and right is not None
            else _READ[COLUMNS[ours]](value, keys[ours], at)
            for ours, value in values.items()
            if ours not in ("question", "step")
        }
        if graded:
            read_row["gold"] = gold_of(values["gold"], f"{at.where}: key `{keys['gold']}`")
        if not isinstance(values["question"], str) or not values["question"].strip():
            raise at.error(keys["question"], values["question"], "Give text, or remove the row.")
        step = step_of(values["step"], keys["step"], at)
        _check_lists(read_row, at)
        renamed = {_RENAMED.get(name, name): value for name, value in read_row.items()}
        return [asked(values["question"], **{**_measured(renamed, at), "step": step})]

    kind = content.get("kind", "boxed") if graded else None
    return Source("mapped", path, files, _ours(columns), read, kind, left_out)


def _ours(columns: dict[str, str]) -> dict[str, str]:
    """Their key -> our columns, for one key may fill several."""
    keys = dict.fromkeys(columns.values())
    return {
        key: ", ".join(ours for ours, theirs in columns.items() if theirs == key) for key in keys
    }


def _check_lists(row: Row, at: Place) -> None:
    """UserError on lists of unequal length; a note on those that the table `tokens` cannot keep."""
    sizes = {name: len(row[name]) for name in _LISTS if row.get(name) is not None}
    if len(set(sizes.values())) > 1:
        said = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise UserError(f"{at.where}: the lists of tokens differ in length: {said}. Mend them.")
    if sizes and "token_ids" not in sizes:
        at.tally.notes["rows with lists but no token_ids: only means of the lists are kept"] += 1


def _measured(row: Row, at: Place) -> Row:
    """With means over the tokens where the log has tokens but not the mean."""
    return row | {name: mean for name, mean in measures(row, at).items() if row.get(name) is None}


class _Loader(yaml.SafeLoader):
    """YAML in which a key that stands twice is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [(key.tag, key.value) for key, _ in node.value]
        for key, _ in node.value:
            if keys.count((key.tag, key.value)) > 1:
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: key {key.value!r} stands twice. Remove one.")
        return super().construct_mapping(node, deep)


def _load(mapping: Path) -> Row:
    try:
        content = yaml.load(mapping.read_text(encoding="utf-8"), _Loader)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError(f"{mapping}: cannot be read as YAML: {reason}") from error
    if not isinstance(content, dict) or not set(content) <= set(_SECTIONS):
        raise UserError(
            f"{mapping}: holds {content!r}. Give the keys {', '.join(_SECTIONS)}: docs/import.md."
        )
    return content


def _section(content: Row, name: str, mapping: Path) -> Row:
    section = content.get(name) or {}
    if not isinstance(section, dict):
        raise UserError(f"{mapping}: {name}: {section!r} is no mapping of our columns.")
    return section


def _check(columns: Row, constants: Row, content: Row, mapping: Path) -> None:
    given = [*columns, *constants]
    for name in given:
        if name not in COLUMNS:
            raise UserError(
                f"{mapping}: {name!r} is no column that a log can fill. "
                f"Known: {', '.join(COLUMNS)}."
            )
        if given.count(name) > 1:
            raise UserError(f"{mapping}: {name!r} is mapped and a constant. Choose one.")
    for name, key in columns.items():
        if not isinstance(key, str):
            raise UserError(f"{mapping}: {name}: {key!r} is no key of theirs. Write it in quotes.")
    if same := {"score", "correct"} & constants.keys():
        raise UserError(f"{mapping}: {same.pop()!r} as a constant says nothing. Map it from a key.")
    needed = ["step", "question"]
    if not {"score", "correct"} & set(columns):
        needed += ["gold", "response"]  # then our grade decides
    if missing := [name for name in needed if name not in given]:
        raise UserError(
            f"{mapping}: needs {', '.join(missing)} under columns or constants"
            f"{' (or map score or correct)' if 'gold' in needed else ''}."
        )
    if not set(str(content.get("kind", "boxed")).split("+")) <= KINDS.keys():
        raise UserError(f"{mapping}: kind: {content['kind']!r}. Known: {', '.join(KINDS)}.")
    if "right" in content and "correct" not in columns:
        raise UserError(f"{mapping}: `right` says what of the key of `correct` is right: map that.")


def _follow(row: Row, key: str) -> Any:
    """The value of a key, or of a dotted one inside objects; None where it is missing."""
    if key in row:
        return row[key]
    value: Any = row
    for name in key.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _right(value: Any, right: Any, key: str, at: Place) -> bool | None:
    wanted = right if isinstance(right, list) else [right]
    if isinstance(value, dict | list):
        raise at.error(key, value, "Give a single value, or null.")
    if isinstance(value, str) and not any(isinstance(each, str) for each in wanted):
        raise at.error(
            key,
            value,
            "`right` holds no text. Write it in quotes: yes and no are not text in YAML.",
        )
    # true is not 1 here, though it is in Python
    return None if value is None else any(value == each and _same(value, each) for each in wanted)


def _same(value: Any, other: Any) -> bool:
    return isinstance(value, bool) == isinstance(other, bool)


def _list(inner: Callable[[Any, str, Place], Any]) -> Callable[[Any, str, Place], Any]:
    def read(values: Any, key: str, at: Place) -> Any:
        if values is None:
            return None
        if not isinstance(values, list) or None in values:
            raise at.error(key, values, "Give a list of numbers, or null.")
        return [inner(value, key, at) for value in values]

    return read


def _token(value: Any, key: str, at: Place) -> int | None:
    token = whole(value, key, at)
    if token is not None and not -(2**31) <= token < 2**31:
        raise at.error(key, value, "Give token ids of at most 32 bits.")
    return token


_READ: dict[ColumnType, Callable[[Any, str, Place], Any]] = {
    TEXT: as_text,
    INT: whole,
    FLOAT: number,
    BOOL: truth,
    INTS: _list(_token),
    FLOATS: _list(number),
}
