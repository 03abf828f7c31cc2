"""The two sides of a comparison: arm, run, and checkpoint or window of steps of each."""

from typing import Any, Literal

import polars as pl
import streamlit as st

from analysis.pairs import Side
from app import state
from app.components.compare_state import Compare, side

Name = Literal["left", "right"]

TITLES: dict[Name, str] = {"left": "**A**", "right": "**B**, compared with A"}


def pick_side(address: Compare, name: Name, arm: str, runs: pl.DataFrame, steps: list[int]) -> Side:
    """Let one side be chosen.

    runs: rows of `runs_overview` of the study's arms that can be chosen; steps: where the side was
    evaluated, empty for training.
    """
    arms = runs["arm"].unique(maintain_order=True).to_list()
    own = runs.filter(pl.col("arm") == arm)
    labels = {run: _label(run, seed) for run, seed in own.select("run", "seed").iter_rows()}
    found = side(address, name, arm, training=not steps)
    again = {f"{name}_sample": None}
    with st.container(border=True):
        st.markdown(TITLES[name])
        st.selectbox("Arm", arms, **_control(name, "", arm, **{f"{name}_run": None}, **again))
        st.selectbox(
            "Run",
            list(labels),
            index=None,
            placeholder=f"all {len(labels)} runs" if len(labels) > 1 else "the one there is",
            format_func=labels.__getitem__,
            **_control(name, "_run", found.run if found.run in labels else None, **again),
        )
        if steps:
            st.selectbox(
                "Checkpoint",
                steps,
                index=None,
                placeholder=f"last (step {steps[-1]})",
                **_control(name, "_step", found.step if found.step in steps else None, **again),
            )
        else:
            with st.container(horizontal=True):
                for end, step in (("from", found.first), ("to", found.last)):
                    st.number_input(
                        f"Steps {end}",
                        value=None,
                        min_value=0,
                        step=1,
                        width=140,
                        placeholder="first" if end == "from" else "last",
                        **_control(name, f"_{end}", step, **again),
                    )
    if found.run is not None and found.run not in labels:
        st.warning(f"{'A' if name == 'left' else 'B'}: this arm has no run of the name given.")
        return Side(arm, None, found.step, found.first, found.last)
    if steps and found.step is not None and found.step not in steps:
        st.warning(f"There was no evaluation at step {found.step}: each run's last one is taken.")
        return Side(arm, found.run)
    return found


def _control(name: Name, field: str, value: Any, **also: Any) -> dict[str, Any]:
    return state.control(Compare, f"{name}{field}", value, **also)


def _label(run: str, seed: int | None) -> str:
    return run if seed is None else f"seed {seed}: {run}"
