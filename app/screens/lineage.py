"""Lineage."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("lineage")
    state.remember("lineage")


show()
