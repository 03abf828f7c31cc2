"""Runs."""

from app import data, state


def show() -> None:
    data.require_catalog()
    state.restore("runs")
    state.remember("runs")


show()
