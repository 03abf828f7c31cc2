"""The snowball detector's findings on one marker, as the screen draws them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import plotly.graph_objects as go
import polars as pl

from analysis.arms import arm_order
from analysis.buffer_figures import add_line, plain_figure, steps_of
from analysis.drawing import say_empty
from analysis.queries import answer
from analysis.snowball import Snowball, ask, detect
from analysis.snowball.arms import curve
from analysis.snowball.cells import NotHereError
from analysis.snowball.replays import DELAYS, doses, gap
from analysis.snowball.verdict import studied
from analysis.theme import FLAWED, MUTED, VALID

Marker = Literal["flawed", "shortcut", "code", "repetition"]
MARKERS: dict[Marker, str] = {
    "flawed": "flawed chains",
    "shortcut": "answers without steps",
    "code": "code",
    "repetition": "repetition",
}
REPLICATES = 2_000  # of what is drawn, not printed
MOST_DOSES = 5  # stands for all above
WINDOW = 10  # steps, as query `snowball_fresh` has it


@dataclass(frozen=True)
class Measured:
    """What the lake says of one marker in one study.

    curves: arm, window_start, mean, low, high (shares of right fresh answers that are marked).
    gaps: delay, value, low, high (marked less unmarked first replays, 95 %). doses: dose, right,
    share. events: rows of query `snowball_event_study`. seeds: number of seeds.
    """

    snowball: Snowball
    curves: pl.DataFrame
    gaps: pl.DataFrame
    doses: pl.DataFrame
    events: pl.DataFrame
    replayed: int
    replayed_marked: int
    seeds: int


def measure(connection: duckdb.DuckDBPyConnection, study: str, marker: Marker) -> Measured:
    """Ask the lake and judge. Takes a second or so for three seeds of 100 steps."""
    frames = ask(connection, study, marker)
    fresh, visits = frames["snowball_fresh"], studied(frames["snowball_visits"])
    replayed, replayed_marked = (
        frames["snowball_visits"].select(pl.col("replayed", "replayed_marked").sum()).row(0)
    )
    return Measured(
        detect(frames, marker, replicates=REPLICATES),
        curves(fresh),
        gaps(visits),
        doses(visits, MOST_DOSES),
        answer(connection, "snowball_event_study", study=study, marker=marker),
        int(replayed or 0),
        int(replayed_marked or 0),
        fresh["seed"].n_unique(),
    )


def curves(fresh: pl.DataFrame) -> pl.DataFrame:
    """The curve of each arm, see `analysis.snowball.arms.curve`."""
    parts = [
        curve(fresh, arm).select(pl.lit(arm).alias("arm"), pl.all())
        for arm in arm_order(fresh["arm"].to_list())
    ]
    kinds = dict.fromkeys(("mean", "low", "high"), pl.Float64)
    empty = pl.DataFrame(schema={"arm": pl.String, "window_start": pl.Int64, **kinds})
    return pl.concat([empty, *parts], how="vertical_relaxed")


def gaps(visits: pl.DataFrame) -> pl.DataFrame:
    """Marked share so many visits after a first replay: marked less like unmarked ones."""
    rows = []
    for delay in DELAYS:
        try:
            made = gap(visits, delay, REPLICATES)
        except (NotHereError, ValueError):
            continue  # nobody was visited so long after a replay
        rows.append((delay, made.value, *made.interval()))
    kinds = dict.fromkeys(("value", "low", "high"), pl.Float64)
    return pl.DataFrame(rows, schema={"delay": pl.Int64, **kinds}, orient="row")


def marked_rows(marker: Marker, marked: bool = True) -> dict[str, Any]:
    """The filters of trajectories with a marker; of a flaw also those without it."""
    if marker == "flawed":
        return {"chain_valid": not marked}
    return {"markers": [marker]} if marked else {}


def draw_curves(found: pl.DataFrame, marker: Marker) -> go.Figure:
    """Marked share of right fresh answers by step; a point opens the marked ones of its window."""
    plot = plain_figure("training step", f"right fresh answers: {MARKERS[marker]}")
    for (arm,), mine in found.group_by("arm", maintain_order=True):
        add_line(
            plot,
            str(arm),
            x=[first + (WINDOW - 1) / 2 for first in mine["window_start"]],
            y=mine["mean"].to_list(),
            low=mine["low"].to_list(),
            high=mine["high"].to_list(),
            behind=[
                {
                    "arms": [arm],
                    "replayed": False,
                    "correct": True,
                    **marked_rows(marker),
                    **steps_of(first, WINDOW),
                }
                for first in mine["window_start"]
            ],
            form=".1%",
        )
    if not plot.data:
        return say_empty(plot, "no right fresh answer whose marker is known")
    return plot.update_yaxes(tickformat=".0%", rangemode="tozero")


def draw_gaps(found: pl.DataFrame, marker: Marker) -> go.Figure:
    """The matched event study: visit 0 is the placebo."""
    plot = plain_figure("visits after the first replay", "marked less unmarked replays")
    if found.is_empty():
        return say_empty(plot, "no two first replays that are alike otherwise")
    for placebo, name, colour, symbol in (
        (True, "placebo: the visit itself", MUTED, "circle-open"),
        (False, "after the replay", FLAWED, "circle"),
    ):
        mine = found.filter((pl.col("delay") == 0) == placebo)
        plot.add_scatter(
            x=mine["delay"].to_list(),
            y=mine["value"].to_list(),
            error_y={
                "type": "data",
                "symmetric": False,
                "array": (mine["high"] - mine["value"]).to_list(),
                "arrayminus": (mine["value"] - mine["low"]).to_list(),
                "thickness": 1.8,
                "width": 4,
            },
            name=name,
            mode="markers",
            marker={"symbol": symbol, "size": 10, "color": colour},
            customdata=[{"replayed": True, **marked_rows(marker)}] * mine.height,
            hovertext=[f"{a:+.1%} to {b:+.1%}" for a, b in mine.select("low", "high").rows()],
            hovertemplate="visit %{x}: %{y:+.1%}, 95 %: %{hovertext}<extra></extra>",
        )
    plot.add_hline(0, line_color=MUTED, line_width=1)
    plot.update_xaxes(dtick=1)
    return plot.update_yaxes(tickformat="+.0%")


def draw_events(rows: pl.DataFrame, arm: str, marker: Marker) -> go.Figure:
    """Marked shares around the first replay, as observed: rows of `snowball_event_study`.

    Over the buckets by number of answers.
    """
    plot = plain_figure("visits from the first replay", "right fresh answers that are marked")
    mine = rows.filter(pl.col("arm") == arm)
    for side, name, colour, symbol, dash in (
        ("treated", "first replay was marked", FLAWED, "circle", "solid"),
        ("control", "it was not", VALID, "square", "dash"),
    ):
        table = pooled(mine, side)
        plot.add_scatter(
            x=table["relative"].to_list(),
            y=table["share"].to_list(),
            name=name,
            mode="lines+markers",
            line={"color": colour, "dash": dash, "width": 2},
            marker={"symbol": symbol, "size": 8, "color": colour},
            customdata=[{"arms": [arm], "replayed": True, **marked_rows(marker, side == "treated")}]
            * table.height,
            hovertext=[f"{right:,}" for right in table["right"]],
            hovertemplate="visit %{x}: %{y:.1%} of %{hovertext} right answers<extra></extra>",
        )
    if all(trace.x == () or not len(trace.x) for trace in plot.data):
        return say_empty(plot, "no first replay whose marker is known")
    plot.add_vline(0, line_color=MUTED, line_width=1)
    plot.update_xaxes(dtick=1)
    return plot.update_yaxes(tickformat=".0%", rangemode="tozero")


def pooled(rows: pl.DataFrame, side: str) -> pl.DataFrame:
    """Share of one side (treated, control) by visit, over buckets: relative, right, share."""
    right, share = pl.col(f"{side}_right"), pl.col(f"{side}_share")
    return (
        rows.filter(right > 0)
        .group_by("relative")
        .agg(right=right.sum(), share=(right * share).sum() / right.sum())
        .sort("relative")
    )


def draw_doses(found: pl.DataFrame, marker: Marker) -> go.Figure:
    """Observed share by the number of marked replays so far; the last stands for all above."""
    plot = plain_figure("marked replays of the question so far", "later right answers marked")
    if found.is_empty():
        return say_empty(plot, "no right answer after a replay")
    behind: list[Mapping[str, Any]] = [
        {"replayed": False, "correct": True, **marked_rows(marker)} for _ in found["dose"]
    ]
    plot.add_scatter(
        x=found["dose"].to_list(),
        y=found["share"].to_list(),
        mode="lines+markers",
        line={"color": VALID, "width": 2},
        marker={"size": 8, "color": VALID},
        customdata=behind,
        hovertext=[f"{right:,}" for right in found["right"]],
        hovertemplate="%{y:.1%} of %{hovertext} right answers<extra></extra>",
        showlegend=False,
    )
    doses_there = found["dose"].to_list()
    words = [f"{dose}+" if dose == MOST_DOSES else str(dose) for dose in doses_there]
    plot.update_xaxes(tickvals=doses_there, ticktext=words)
    return plot.update_yaxes(tickformat=".0%", rangemode="tozero")
