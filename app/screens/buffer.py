"""Experience buffer: what lies in it, how old it is, how often it is used, and by which rule."""

from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import streamlit as st

from analysis.buffer_figures import MEASURES, arms_with_buffer
from analysis.concentration import Counted
from app import data, state
from app.components import buffer_views as views
from app.components.buffer_snapshot import most_replayed, snapshot
from app.components.scope import pick_arms, pick_seeds, run_ids, trained_runs
from app.components.study_picker import pick_study

View = Literal["filling", "events", "age", "ratios", "reuse", "concentration", "draws", "snapshot"]
ONLY_THE_LAST = 10**9  # every so many steps


@dataclass(frozen=True)
class Buffer:
    """What the address holds. run and step are those of the view of one step; None: the first
    run and its last step."""

    study: str | None = None
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    view: View = "filling"
    counted: Counted = "draws"
    measure: Literal["gini", "top_1", "top_10"] = "gini"
    run: str | None = None
    step: int | None = None


def show() -> None:
    data.require_catalog()
    state.restore("buffer")
    study = pick_study(Buffer, state.read(Buffer).study)
    _buffers(study)
    state.remember("buffer")


def _buffers(study: str) -> None:
    address = state.read(Buffer)
    runs = trained_runs(study)
    last = data.answer("bucket_occupancy", study=study, every=ONLY_THE_LAST)
    if last.is_empty():
        st.info("The log of this study tells of no buffer: an import, or no step is logged yet.")
        return
    with_buffer = arms_with_buffer(last)
    if not with_buffer:
        st.info("No arm of this study has filled a replay buffer.")
        return
    arms, seeds = _choices(address, runs, with_buffer)
    without = [arm for arm in arms if arm not in with_buffer]
    if without:
        st.info("Without a replay buffer, so not shown:")
        st.code("\n".join(without), language=None)
    shown = [arm for arm in arms if arm in with_buffer]
    chosen = run_ids(runs, shown, seeds)
    if chosen:
        _view(address, study, runs.filter(pl.col("run").is_in(chosen)), shown, last)


def _choices(
    address: Buffer, runs: pl.DataFrame, with_buffer: list[str]
) -> tuple[list[str], list[int]]:
    left, right = st.columns([3, 1], gap="small")
    with left:
        arms = pick_arms(Buffer, runs, address.arms, with_buffer, "those with a buffer")
    with right:
        seeds = pick_seeds(Buffer, runs, address.seeds)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _segments("Show", "view", views.VIEWS, address)
        if address.view in ("reuse", "concentration"):
            names = {"draws": "draws of a question", "replays": "replayed trajectories"}
            _segments("Count", "counted", names, address)
        if address.view == "concentration":
            short = {name: text.removeprefix("share of the ") for name, text in MEASURES.items()}
            _segments("Measure", "measure", short, address)
    return arms, seeds


def _segments(title: str, field: str, names: dict[str, str], address: Buffer) -> None:
    st.segmented_control(
        title,
        list(names),
        format_func=names.__getitem__,
        required=True,
        **state.control(Buffer, field, getattr(address, field)),
    )


def _view(
    address: Buffer, study: str, runs: pl.DataFrame, arms: list[str], last: pl.DataFrame
) -> None:
    ids = runs["run"].to_list()
    mine = last.filter(pl.col("run").is_in(ids))
    ends = dict(mine.group_by("arm").agg(pl.col("step").max()).iter_rows())
    steps = max(ends.values(), default=1)
    match address.view:
        case "filling":
            views.filling(study, ids, arms, steps)
        case "events":
            views.happening(study, ids, arms, steps)
        case "age":
            views.aging(study, ids, arms, ends)
        case "ratios":
            views.weighing(study, ids, steps)
        case "reuse":
            views.reusing(study, ids, steps, address.counted)
        case "concentration":
            views.concentrating(study, ids, ends, address.counted, address.measure)
        case "draws":
            views.drawing(study, ids)
        case "snapshot":
            _one_step(address, study, runs, last)


def _one_step(address: Buffer, study: str, runs: pl.DataFrame, last: pl.DataFrame) -> None:
    known = runs["run"].to_list()
    if address.run is not None and address.run not in known:
        st.warning("Run: the one that the address names is none of these arms and seeds.")
    run = str(address.run if address.run in known else known[0])
    ends: Any = last.filter(pl.col("run") == run)["step"].max()
    end = int(ends or 0)
    step = end if address.step is None else min(max(address.step, 0), end)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox("Run", known, width=320, **state.control(Buffer, "run", run))
        st.number_input(
            "After step",
            min_value=0,
            max_value=end,
            step=1,
            width=160,
            **state.control(Buffer, "step", step),
        )
    arm = str(runs.filter(pl.col("run") == run)["arm"][0])
    snapshot(study, arm, run, step)
    st.subheader("Replayed most", anchor=False)
    st.caption("Over the whole run; a click opens the last replay.")
    most_replayed(study, run)


show()
