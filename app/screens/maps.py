"""Difficulty and entropy: maps of all trajectories by step, bucket and entropy, and their rows."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

import polars as pl
import streamlit as st

from analysis.browse import ID, Filters, first_columns
from analysis.errors import UserError
from analysis.maps import (
    KINDS,
    VALUES,
    Box,
    Kind,
    Value,
    axes,
    box_words,
    cell_query,
    draw_map,
    map_arms,
    placed,
)
from analysis.observations.clustered import first_arms
from app import data, state
from app.components.errors import show_error
from app.components.map_chart import Mouse, map_chart
from app.components.map_figures import study_figure
from app.components.row_opener import rows_that_open
from app.components.scope import pick_arms, pick_seeds, run_ids, trained_runs
from app.components.study_picker import pick_study
from app.components.trajectory_rows import column_config, trajectory_rows
from app.links import TRAJECTORIES, open_rows, rows_query

SHOWN_ARMS = 4  # unless the address names some
FIRST_ROWS = 20
Paper = Literal[
    "masked_grpo",
    "gain_by_bucket",
    "entropy_validity",
    "entropy_by_difficulty",
    "bucket_dynamics",
    "markers",
]
PAPER: dict[Paper, str] = {
    "masked_grpo": "masked buckets",
    "gain_by_bucket": "gain by bucket",
    "entropy_validity": "entropy and validity",
    "entropy_by_difficulty": "entropy by difficulty",
    "bucket_dynamics": "bucket dynamics",
    "markers": "markers",
}


@dataclass(frozen=True)
class Maps:
    """What the address holds. The last six are the box: its arm (None: all shown), its ranges."""

    study: str | None = None
    arms: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    map: Kind = "bucket_step"
    value: Value = "trajectories"
    mouse: Mouse = "frame"
    replayed: bool | None = None
    correct: bool | None = None
    figure: Paper | None = None
    arm: str | None = None
    step_min: int | None = None
    step_max: int | None = None
    bucket: tuple[int, ...] = ()
    entropy_min: float | None = None
    entropy_max: float | None = None

    @property
    def box(self) -> Box:
        return Box(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Box)})


def show() -> None:
    data.require_catalog()
    state.restore("maps")
    study = pick_study(Maps, state.read(Maps).study)
    runs = trained_runs(study)
    if runs.is_empty():
        st.info("This study has no trained run yet: there is nothing to draw a map of.")
    else:
        _maps(study, runs)
        _paper(study)
    state.remember("maps")


@st.fragment
def _paper(study: str) -> None:
    """One of the paper's figures, when it is asked for."""
    st.subheader("The paper's figures from this lake", anchor=False)
    address = state.read(Maps)
    _segments("Figure", "figure", PAPER, address, need=False)
    if address.figure is not None:
        study_figure(study, address.figure, "maps")
    state.remember("maps")


@st.fragment  # a box need not draw the figure below anew
def _maps(study: str, runs: pl.DataFrame) -> None:
    try:
        _show_maps(study, runs)
    except UserError as error:
        show_error(error)
    state.remember("maps")


def _show_maps(study: str, runs: pl.DataFrame) -> None:
    address = state.read(Maps)
    arms, seeds = _choices(address, runs)
    chosen = run_ids(runs, arms, seeds)
    extent = data.answer("map_extent", study=study, run=chosen)
    if extent.is_empty():
        st.info("No trajectory of these runs is in the catalog.")
        return
    if "entropy" in KINDS[address.map] and extent["known"].sum() == 0:
        st.info("No entropy is known here (an import has none): see the map of bucket by step.")
        return
    if "bucket" in KINDS[address.map] and extent["group_size"].max() is None:
        st.info("No group of these trajectories is known, so neither is a bucket.")
        return
    _draw(address, study, chosen, extent)
    _typed(address, arms, extent)
    _rows(address, study, arms, seeds, int(extent["group_size"].max() or 0))  # type: ignore[arg-type]


def _choices(address: Maps, runs: pl.DataFrame) -> tuple[list[str], list[int]]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _segments("Map", "map", {kind: title for kind, (title, *_) in KINDS.items()}, address)
        _segments("Colour", "value", VALUES, address)
        _segments("Rollouts", "replayed", {False: "fresh", True: "replayed"}, address, need=False)
        _segments("Answers", "correct", {True: "right", False: "wrong"}, address, need=False)
        _segments("Mouse", "mouse", {"frame": "frames", "click": "clicks"}, address)
    first = first_arms(runs["arm"].to_list())[:SHOWN_ARMS]
    left, right = st.columns([3, 1], gap="small")
    with left:
        arms = pick_arms(Maps, runs, address.arms, first)
    with right:
        return arms, pick_seeds(Maps, runs, address.seeds)


def _segments(
    title: str, field: str, names: dict[Any, str], address: Maps, need: bool = True
) -> None:
    st.segmented_control(
        title,
        list(names),
        format_func=names.__getitem__,
        required=need,
        **state.control(Maps, field, getattr(address, field)),
    )


def _draw(address: Maps, study: str, runs: list[str], extent: pl.DataFrame) -> None:
    """One map an arm, in the same colours."""
    x, y = axes(address.map, extent)
    cells = data.answer(
        "map_cells",
        study=study,
        run=runs,
        replayed=address.replayed,
        correct=address.correct,
        **cell_query(address.map, extent),
    )
    cells = placed(cells, x, y)
    if cells.is_empty():
        st.info("No trajectory lies on this map with these choices.")
        return
    arms = map_arms(cells)
    framed = address.box if address.box != Box() else None
    map_chart(
        draw_map(cells, x, y, address.value, framed, address.arm),
        f"maps.{arms}.{x}.{y}.{address.mouse}.{address.arm}.{framed}",
        arms,
        x,
        y,
        address.mouse,
        _boxed,
        f"Maps of {KINDS[address.map][0]}, an arm a row",
    )
    st.caption(
        "Frame cells with the mouse, or let it click one: their rows come below. The same ranges "
        "can be typed. A cell without colour holds no trajectory"
        + (", or none whose value is known." if address.value != "trajectories" else ".")
        + (" Both ends of an entropy range count." if "entropy" in KINDS[address.map] else "")
        + (
            " The last row of entropy holds all above it."
            if "entropy" in KINDS[address.map]
            else ""
        )
    )


def _boxed(arm: str | None, box: Box) -> None:
    state.write(state.change(state.read(Maps), arm=arm, **dataclasses.asdict(box)))


def _typed(address: Maps, arms: list[str], extent: pl.DataFrame) -> None:
    """The box as numbers, for the keyboard."""
    most = int(extent["group_size"].max() or 0)  # type: ignore[arg-type]
    buckets = sorted({*range(most + 1), *address.bucket})
    names = sorted({*arms, *([address.arm] if address.arm else [])})
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _number("Steps from", "step_min", address, 1)
        _number("to", "step_max", address, 1)
        st.multiselect(
            "k right",
            buckets,
            placeholder="any",
            width=220,
            **state.control(Maps, "bucket", address.bucket),
        )
        _number("Entropy from", "entropy_min", address, 0.05)
        _number("to ", "entropy_max", address, 0.05)
        st.selectbox(
            "Arm of the box",
            names,
            placeholder="all shown",
            width=190,
            **state.control(Maps, "arm", address.arm),
        )
        st.button("Clear the box", on_click=_boxed, args=(None, Box()))


def _number(title: str, field: str, address: Maps, step: int | float) -> None:
    st.number_input(
        title,
        value=None,
        step=step,
        placeholder="any",
        width=130,
        **state.control(Maps, field, getattr(address, field)),
    )


def _rows(address: Maps, study: str, arms: list[str], seeds: list[int], group_size: int) -> None:
    if address.box == Box():
        st.caption("No box yet: nothing is framed.")
        return
    filters = state.change(
        Filters(),
        study=study,
        arms=(address.arm,) if address.arm else tuple(arms),
        seeds=tuple(seeds),
        replayed=address.replayed,
        correct=address.correct,
        **dataclasses.asdict(address.box),
    )
    page = data.page(filters, 1, FIRST_ROWS)
    words = box_words(address.box, group_size)
    with st.container(horizontal=True, vertical_alignment="center"):
        count = f"{page.total:,} trajector{'y' if page.total == 1 else 'ies'}"
        st.markdown(f"**{count} in the box**: {words}")
        st.page_link(
            TRAJECTORIES,
            label="Open all in Trajectories",
            icon=":material/segment:",
            query_params=rows_query(**dataclasses.asdict(filters)),
        )
    if page.total:
        ids, columns = page.frame[ID].to_list(), first_columns(filters.source)
        rows_that_open(
            trajectory_rows(page.frame, columns),
            "maps.rows",
            lambda row: open_rows(**dataclasses.asdict(filters), trajectory=ids[row]),
            height=300,
            column_config=column_config(columns, filters),
        )
        if page.total > FIRST_ROWS:
            st.caption(f"The first {FIRST_ROWS}; click a row to read it.")


show()
