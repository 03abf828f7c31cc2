"""Snowball."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("snowball")
    state.remember("snowball")


show()
