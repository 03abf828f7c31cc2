"""A question that takes long: how long it has run, and a button that gives it up."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

PATIENCE = 0.5  # s until the page says that it waits
GIVEN_UP = "given up"  # in the session: the question that was given up last


@contextmanager
def waiting(question: Hashable) -> Iterator[Callable[[float], None]]:
    """Gives what is to be told, some times a second, for how many seconds the question has run.

    Whatever the reader does meanwhile ends the page's run, with an exception from here, as any
    call of Streamlit does. A question that was given up ends the page until it is asked again.
    """
    if st.session_state.get(GIVEN_UP) == question:
        st.warning("You gave this question up.")
        st.button("Ask again", on_click=_ask_again, key=f"again.{hash(question)}")
        st.stop()
    place: DeltaGenerator | None = None
    text: DeltaGenerator | None = None

    def told(seconds: float) -> None:
        nonlocal place, text
        if seconds < PATIENCE:
            return
        if place is None or text is None:
            place = st.empty()
            with place.container(horizontal=True, vertical_alignment="center"):
                text = st.empty()
                st.button(
                    "Cancel", on_click=_give_up, args=(question,), key=f"cancel.{hash(question)}"
                )
        text.caption(f"Asking the catalog: {seconds:.0f} s …")

    yield told
    if place is not None:
        place.empty()


def _give_up(question: Hashable) -> None:
    st.session_state[GIVEN_UP] = question


def _ask_again() -> None:
    st.session_state.pop(GIVEN_UP, None)
