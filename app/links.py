"""Addresses of one screen that another one links to."""

from typing import Any

from app import state
from app.browser import Browser
from app.components.compare_state import Compare

Query = dict[str, list[str]]

TRAJECTORIES = "screens/trajectories.py"
QUESTION = "screens/question.py"
LINEAGE = "screens/lineage.py"
COMPARE = "screens/compare.py"


def rows_query(**filters: Any) -> Query:
    """The address of the rows that pass these filters (fields of `Browser` and `Filters`)."""
    fixed = {k: tuple(v) if isinstance(v, list) else v for k, v in filters.items()}
    return state.to_query(state.change(Browser(), **fixed))


def open_rows(**filters: Any) -> None:
    """Go to the rows that pass these filters, or to `trajectory`. Not from a callback."""
    state.go(TRAJECTORIES, rows_query(**filters))


def compare_query(**fields: Any) -> Query:
    """The address of a comparison (fields of `Compare`): `left` and `right`, or `a` and `b`."""
    return state.to_query(Compare(**fields))


def named_query(name: str, **parameters: Any) -> Query:
    """The address of a named query on the screen SQL; a list is several items of one parameter."""
    given = [
        f"{key}={item}"
        for key, value in parameters.items()
        for item in (value if isinstance(value, list | tuple) else [value])
    ]
    return {"named": [name], "parameters": given}
