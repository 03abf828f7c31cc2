"""Compare."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("compare")
    state.remember("compare")


show()
