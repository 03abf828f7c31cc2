"""Experience buffer."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("buffer")
    state.remember("buffer")


show()
