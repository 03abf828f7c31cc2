"""A question that takes long: how long it has run, and a button that gives it up."""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analysis.errors import UserError

PATIENCE = 0.5  # s until the page says that it waits
GIVEN_UP = "given up"  # in the session: the questions that were given up


@contextmanager
def waiting(question: Hashable) -> Iterator[Callable[[float], None]]:
    """Gives what is to be told, some times a second, for how many seconds the question has run.

    Whatever the reader does meanwhile ends the page's run, with an exception from here, as any
    call of Streamlit does. A question that was given up ends the page until it is asked again.
    """
    if question in st.session_state.get(GIVEN_UP, set()):
        with st.container(horizontal=True, vertical_alignment="center", border=True):
            st.markdown(":material/block: You gave this question up.")
            st.button(
                "Ask again", on_click=_ask_again, args=(question,), key=f"again.{hash(question)}"
            )
        st.stop()
    line = _Line(question)
    try:
        yield line.tell
    except UserError:
        line.clear()
        raise
    line.clear()


class _Line:
    """The line on the page; it is not there while the question is quick."""

    def __init__(self, question: Hashable) -> None:
        self._question = question
        self._place: DeltaGenerator | None = None
        self._text: DeltaGenerator | None = None

    def tell(self, seconds: float) -> None:
        if seconds < PATIENCE:
            return
        if self._text is None:
            self._place = st.empty()
            box = self._place.container(horizontal=True, vertical_alignment="center", border=True)
            self._text = box.empty()
            box.button(
                "Cancel",
                icon=":material/close:",
                on_click=_give_up,
                args=(self._question,),
                key=f"cancel.{hash(self._question)}",
            )
        self._text.markdown(f":material/hourglass_top: Asking the catalog: {seconds:.0f} s")

    def clear(self) -> None:
        if self._place is not None:
            self._place.empty()


def _give_up(question: Hashable) -> None:
    st.session_state.setdefault(GIVEN_UP, set()).add(question)


def _ask_again(question: Hashable) -> None:
    st.session_state[GIVEN_UP].discard(question)
