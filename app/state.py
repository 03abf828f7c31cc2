"""The address of a page <-> a frozen dataclass.

The query string is the only truth. A page reads its state from the address, draws every widget
with it, and a widget's change goes back into the address, so that a link, a reload and the
browser's back button all restore the same screen. Only what differs from the default is written.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

import streamlit as st

S = TypeVar("S")

STUDY = "study"  # in the session: the study that was chosen last, on whatever page
LARGEST = 2**53 - 1  # the largest number that a widget in the browser holds exactly


def read(kind: type[S]) -> S:
    """The state that the address holds; the default for whatever it does not hold."""
    return from_query(kind, _query())


def write(state: Any) -> None:
    """Put the state into the address."""
    query = to_query(state)
    if query != _query():
        st.query_params.from_dict(query)


def restore(page: str) -> None:
    """Coming from another page with a bare address, find this page as it was left.

    One that showed another study than the one chosen since then shows that instead. What `go` left
    in the address of this page counts as bare.
    """
    arrived = st.session_state.get("page") != page
    study = st.session_state.get(STUDY)
    left = st.session_state.setdefault("left", {}).get(page, {})
    if arrived and _query() in ({}, st.session_state.get("went", {}).get(page)):
        if study is not None and (not left or left.get("study", [study]) != [study]):
            left = {"study": [study]}
        st.query_params.from_dict(left)
    st.session_state["page"] = page


def remember(page: str) -> None:
    """Keep the address of a page for `restore`."""
    st.session_state.setdefault("left", {})[page] = _query()


def go(screen: str, query: dict[str, list[str]]) -> typing.NoReturn:
    """Open another screen, a file of `app`, at an address. Not from a callback.

    Streamlit writes the new query to the address of the page that is left as well, where the
    browser's back button finds it: `restore` puts it right.
    """
    st.session_state.setdefault("went", {})[st.session_state["page"]] = query
    st.switch_page(screen, query_params=query)


def _query() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in st.query_params}


def control(kind: type[Any], field: str, value: Any, **also: Any) -> dict[str, Any]:
    """Arguments that make a widget show `value` and write a change of it into the address.

    `kind` is the page's dataclass; `also` holds what a change of this field sets besides, such as
    `page=1`. A list becomes a tuple, an empty text None.
    """
    key = f"{kind.__name__}.{field}"
    st.session_state[key] = list(value) if isinstance(value, tuple) else value
    return {"key": key, "on_change": _changed, "args": (kind, field, key, also)}


def _changed(kind: type[Any], field: str, key: str, also: dict[str, Any]) -> None:
    value = st.session_state[key]
    value = tuple(value) if isinstance(value, list) else None if value == "" else value
    write(change(read(kind), **{**also, field: value}))


def change(state: S, **changes: Any) -> S:
    """A copy with some fields changed, in the state itself or in a dataclass inside it."""
    assert dataclasses.is_dataclass(state) and not isinstance(state, type)
    for field in dataclasses.fields(state):
        inner = getattr(state, field.name)
        if dataclasses.is_dataclass(inner) and not isinstance(inner, type):
            names = {item.name for item in dataclasses.fields(inner)} & changes.keys()
            here = {name: changes.pop(name) for name in names}
            changes[field.name] = change(inner, **here)
    return typing.cast(S, dataclasses.replace(state, **changes))


def to_query(state: Any) -> dict[str, list[str]]:
    """Every field that differs from its default, as query parameters."""
    query: dict[str, list[str]] = {}
    for field in dataclasses.fields(state):
        value = getattr(state, field.name)
        if dataclasses.is_dataclass(value):
            query |= to_query(value)
        elif value != field.default:
            items = value if isinstance(value, tuple) else (value,)
            query[field.name] = ["" if item is None else _write(item) for item in items]
    return query


def from_query(kind: type[S], query: Mapping[str, list[str]]) -> S:
    """The inverse of `to_query`; a parameter that cannot be read is left out."""
    hints = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    for field in dataclasses.fields(typing.cast(Any, kind)):
        hint = hints[field.name]
        if dataclasses.is_dataclass(hint):
            values[field.name] = from_query(typing.cast(Any, hint), query)
        elif field.name in query:
            try:
                values[field.name] = _read(query[field.name], hint)
            except (ValueError, LookupError):
                continue
    return kind(**values)


def _write(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(texts: list[str], hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        return tuple(_read([text], typing.get_args(hint)[0]) for text in texts)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        if not texts[0]:
            return None
        hint = next(item for item in typing.get_args(hint) if item is not types.NoneType)
    if typing.get_origin(hint) is typing.Literal:
        return {str(item): item for item in typing.get_args(hint)}[texts[0]]
    if hint is bool:
        return {"true": True, "false": False}[texts[0]]
    value = hint(texts[0])
    if isinstance(value, int | float) and not abs(value) <= LARGEST:
        raise ValueError(texts[0])
    return value
