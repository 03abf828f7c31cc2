"""Which arms and seeds of a study a screen shows: widgets, and the runs that they mean."""

from collections.abc import Sequence
from typing import Any

import polars as pl
import streamlit as st

from analysis.arms import BASE, arm_order
from app import data, state


def trained_runs(study: str) -> pl.DataFrame:
    """The rows of query `study_runs`, the untrained model aside."""
    return data.answer("study_runs", study=study).filter(pl.col("arm") != BASE)


def pick_arms(
    kind: type[Any],
    runs: pl.DataFrame,
    named: Sequence[str],
    default: Sequence[str],
    meaning: str = "the first ones",
) -> list[str]:
    """Let arms be chosen, in the common order; `default` where the address names none of these.

    meaning: what the default is, in words.
    """
    known = arm_order(runs["arm"].to_list())
    chosen = [arm for arm in known if arm in named]
    st.multiselect("Arms", known, placeholder=meaning, **state.control(kind, "arms", tuple(chosen)))
    if len(chosen) < len(set(named)):
        st.warning("Arms: this study lacks some that the address names.")
    return chosen or [arm for arm in known if arm in default]


def pick_seeds(kind: type[Any], runs: pl.DataFrame, named: Sequence[int]) -> list[int]:
    """Let seeds be chosen; none: all of them. No widget where there is one seed or none."""
    known = runs["seed"].drop_nulls().unique().sort().to_list()
    chosen = [seed for seed in known if seed in named]
    if len(known) > 1:
        st.multiselect(
            "Seeds", known, placeholder="all", **state.control(kind, "seeds", tuple(chosen))
        )
    return chosen


def run_ids(runs: pl.DataFrame, arms: Sequence[str], seeds: Sequence[int] = ()) -> list[str]:
    """The ids of the runs of these arms and seeds (none: all seeds)."""
    wanted = pl.col("arm").is_in(list(arms))
    if seeds:
        wanted &= pl.col("seed").is_in(list(seeds))
    found: list[str] = runs.filter(wanted)["run"].to_list()
    return found
