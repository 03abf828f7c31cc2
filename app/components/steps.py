"""The buttons to what comes before and after the chosen one, with the keys P and N."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def show_steps(
    before: T | None, after: T | None, on_step: Callable[[T], None], key: str, place: str
) -> None:
    """`on_step` gets what its button leads to; `place` says where the chosen one stands.

    The buttons have the keys `key`.previous and `key`.next; one that leads nowhere is greyed.
    """
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, shortcut, target in (("Previous", "P", before), ("Next", "N", after)):
            st.button(
                label,
                shortcut=shortcut,
                disabled=target is None,
                on_click=on_step,
                args=(target,),
                key=f"{key}.{label.lower()}",
            )
        st.caption(place)


def neighbours(ids: Sequence[str], chosen: str | None) -> tuple[str | None, str | None]:
    """The ids before and after the chosen one; None at an end, or where it is not among them."""
    if chosen not in ids:
        return None, None
    place = ids.index(chosen)
    before = ids[place - 1] if place > 0 else None
    return before, ids[place + 1] if place + 1 < len(ids) else None
