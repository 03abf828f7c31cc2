"""The settings of runs: flattened to `section.key`, and what two runs have different."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.errors import UserError

Flat = dict[str, Any]  # `section.key` -> a JSON value without keys of its own

_KINDS = {bool: "yes or no", int: "whole number", float: "number", str: "text", list: "list"}


@dataclass(frozen=True)
class Difference:
    """A setting that two runs do not share; the values as JSON, None where a run lacks the key."""

    name: str
    left: str | None
    right: str | None


def read_settings(text: str | None) -> Flat:
    """The settings that a run has as JSON, flattened; {} of a run without. Raises UserError."""
    if not text:
        return {}
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("it is no JSON object")
        return dict(_leaves(value))
    except (ValueError, RecursionError) as error:
        raise UserError(f"these settings cannot be read: {error}") from error


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[Difference]:
    """What two flat settings do not share, in the order of the left ones, then of the right."""
    names = dict.fromkeys([*left, *right])
    return [
        Difference(name, _shown_in(left, name), _shown_in(right, name))
        for name in names
        if not (name in left and name in right and _same(left[name], right[name]))
    ]


def shown(value: Any) -> str:
    """A value as JSON: a text in quotes, nothing as `null`."""
    return json.dumps(value, ensure_ascii=False)


def kind_of(value: Any) -> str:
    """The type of a value in words; empty for null."""
    return _KINDS.get(type(value), "")


def _leaves(section: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in section.items():
        # A key with a dot of its own is quoted, so that it is told from a section.
        name = before + (json.dumps(key, ensure_ascii=False) if "." in key else key)
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{name}.")
        else:
            yield name, value


def _shown_in(settings: Mapping[str, Any], name: str) -> str | None:
    return shown(settings[name]) if name in settings else None


def _same(left: Any, right: Any) -> bool:
    """1 and 1.0 are the same, 1 and true are not."""
    numbers = (int, float)
    if type(left) in numbers and type(right) in numbers and left == right:
        return True
    return shown(left) == shown(right)
