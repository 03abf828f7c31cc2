"""Question."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("question")
    state.remember("question")


show()
