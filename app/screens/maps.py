"""Difficulty and entropy."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("maps")
    state.remember("maps")


show()
