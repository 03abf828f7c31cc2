"""Reading a settings file: YAML, checked by a pydantic class.

A mistake is an error that names the file, the key, the value found and what was meant.
"""

import difflib
from collections.abc import Iterable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from exgrpo.errors import UserError

T = TypeVar("T", bound=BaseModel)


class Named(Protocol):
    """A kind of settings file: what one is called, and its folder below config/."""

    word: ClassVar[str]
    folder: ClassVar[str]


def existing(kind: type[Named], name: str, config: Path, named_in: str | Path | None) -> Path:
    """The file of that kind and name. UserError, said to be `named_in`, with the nearest name."""
    folder = config / kind.folder
    path = folder / f"{name}.yaml"
    if path.is_file():
        return path
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    where = f"{named_in}: " if named_in else ""
    raise UserError(
        f"{where}unknown {kind.word} {name!r}. {suggest(name, known)}"
        f"Known: {', '.join(known) or 'none'} (in {folder})."
    )


def suggest(name: str, known: Iterable[str]) -> str:
    """`Did you mean ...? `, or nothing where no known name is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"Did you mean {close[0]!r}? " if close else ""


class _Loader(yaml.SafeLoader):
    """Safe, and strict: a key that stands twice would silently lose its first value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.value != "<<"]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {key.value!r} stands twice", key.start_mark
                )
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """What the file holds. UserError when it is no YAML."""
    try:
        return yaml.load(path.read_text(), _Loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: no valid YAML: {error}. Mend the line named.") from error


def parse(model: type[T], value: Any, path: Path, prefix: str = "") -> T:
    """The value as an object of the class. UserError with a line for each mistake.

    prefix: of the keys, where the value is part of the file.
    """
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected keys and values, found {value!r}. Write `key: value`.")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        lines = [_explain(model, item, path, prefix) for item in _one_a_key(model, error.errors())]
        raise UserError("\n".join(lines)) from error


def _one_a_key(model: type[BaseModel], items: Iterable[Any]) -> list[dict[str, Any]]:
    """The errors, with one message where a value fits no branch of a union.

    Where the value is a section, the branches that want something else say nothing.
    """
    named = [(tuple(_keys(model, item)[0]), item) for item in items]
    merged: dict[tuple[Any, ...], dict[str, Any]] = {}
    for keys, item in named:
        if any(keys == other[: len(keys)] and keys != other for other, _ in named if keys):
            continue
        place = keys or item["loc"]
        if item["type"] == "model_type":  # pydantic names a class, which no file has
            wanted = ", ".join(_keys(model, item)[1].model_fields)
            item = {**item, "msg": f"Input should be a section with the keys {wanted}"}
        if place in merged:
            also = item["msg"].removeprefix("Input should be ")
            item = {**item, "msg": f"{merged[place]['msg']}, or {also}"}
        merged[place] = item
    return list(merged.values())


def _explain(model: type[BaseModel], item: Any, path: Path, prefix: str) -> str:
    keys, section = _keys(model, item)
    name, found = prefix + ".".join(keys), item["input"]
    if item["type"] == "extra_forbidden":
        known = sorted(section.model_fields)
        return (
            f"{path}: unknown key `{name}` (value {found!r}). "
            f"{suggest(keys[-1], known)}Known here: {', '.join(known)}."
        )
    if item["type"] == "missing":
        return f"{path}: key `{name}` is missing. Add it."
    message = item["msg"].removeprefix("Value error, ")
    if not keys:  # it concerns several sections at once
        return f"{path}: {prefix.replace('.', ': ')}{message}."
    return f"{path}: key `{name}`: {message}; found {found!r}. Change the value."


def _keys(model: type[BaseModel], item: Any) -> tuple[list[str], type[BaseModel]]:
    """The keys that lead to an error, without branches of a union; the last section on the way."""
    keys: list[str] = []
    kind: Any = model
    for part in item["loc"]:
        kind, is_key = _inner(kind, part)
        if is_key:
            keys.append(str(part))
        if kind is None:
            break
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            model = kind
    return keys, model


def _inner(kind: Any, part: Any) -> tuple[Any, bool]:
    """The type that a part of an error's location leads to from a type, None where that is no
    matter; and whether the part is a key, not a branch of a union.
    """
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        field = kind.model_fields.get(part)
        return (field.annotation if field else None), True
    inner = [each for each in get_args(kind) if each is not type(None)]
    if get_origin(kind) in (Union, UnionType):
        if len(inner) == 1:  # X | None: no branch in the location
            return _inner(inner[0], part)
        return next((each for each in inner if getattr(each, "__name__", "") == part), None), False
    return (inner[-1], True) if get_origin(kind) in (dict, list) else (None, False)
