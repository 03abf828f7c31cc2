"""Claims."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("claims")
    state.remember("claims")


show()
