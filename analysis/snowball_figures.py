"""The snowball detector's findings on one marker, as the screen draws them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import plotly.graph_objects as go
import polars as pl

from analysis.arm_rows import row_axis, rows_layout
from analysis.arms import arm_order
from analysis.buffer_figures import add_line, plain_figure, steps_of
from analysis.drawing import say_empty
from analysis.queries import answer
from analysis.snowball import Snowball, ask, detect
from analysis.snowball.arms import curve
from analysis.snowball.cells import NotHereError
from analysis.snowball.replays import DELAYS, doses, gap
from analysis.snowball.verdict import studied
from analysis.theme import FLAWED, MUTED, VALID, Look

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
ROW = 200  # px: height of an arm's row
SIDES = {
    "treated": ("first replay was marked", Look(FLAWED, "circle", "solid")),
    "control": ("it was not", Look(VALID, "square", "dash")),
}


@dataclass(frozen=True)
class Replays:
    """What follows replays of marked answers.

    gaps: delay, value, low, high (marked less unmarked first replays, 95 %). doses: dose, right,
    share.
    """

    gaps: pl.DataFrame
    doses: pl.DataFrame


def judge(connection: duckdb.DuckDBPyConnection, study: str, marker: Marker) -> Snowball:
    """The detector's verdict. Takes a second or so for three seeds of 100 steps."""
    return detect(ask(connection, study, marker), marker, replicates=REPLICATES)


def marked_shares(
    connection: duckdb.DuckDBPyConnection, study: str, marker: Marker
) -> pl.DataFrame:
    """`curves` of the arms of a study."""
    return curves(answer(connection, "snowball_fresh", study=study, marker=marker))


def after_replays(connection: duckdb.DuckDBPyConnection, study: str, marker: Marker) -> Replays:
    """Matched event study and dose-response, of the arms whose replays are studied."""
    visits = studied(answer(connection, "snowball_visits", study=study, marker=marker))
    return Replays(gaps(visits), doses(visits, MOST_DOSES))


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


def draw_events(rows: pl.DataFrame, marker: Marker) -> go.Figure:
    """Marked shares around the first replay, as observed, an arm a row.

    Over the buckets by number of answers. rows: of `snowball_event_study`.
    """
    arms = arm_order(rows["arm"].to_list())
    traces = [
        _side(rows.filter(pl.col("arm") == arm), arm, row, side, marker)
        for row, arm in enumerate(arms)
        for side in SIDES
    ]
    if not any(trace["x"] for trace in traces):
        return say_empty(plain_figure("", ""), "no first replay whose marker is known")
    x = {"title": {"text": "visits from the first replay"}, "dtick": 1}
    y = {"title": {"text": "marked"}, "tickformat": ".0%", "rangemode": "tozero"}
    layout = rows_layout(arms, x, y, ROW, legend=40)
    zero = {"type": "line", "x0": 0, "x1": 0, "y0": 0, "y1": 1, "yref": "paper"}
    layout["shapes"] = [{**zero, "line": {"color": MUTED, "width": 1}}]
    return go.Figure({"data": traces, "layout": layout}, _validate=False)


def _side(rows: pl.DataFrame, arm: str, row: int, side: str, marker: Marker) -> dict[str, Any]:
    name, style = SIDES[side]
    table = pooled(rows, side)
    behind = {"arms": [arm], "replayed": True, **marked_rows(marker, side == "treated")}
    return {
        "type": "scatter",
        "x": table["relative"].to_list(),
        "y": table["share"].to_list(),
        "name": name,
        "legendgroup": name,
        "showlegend": row == 0,
        "mode": "lines+markers",
        "line": {"color": style.colour, "dash": style.dash, "width": 2},
        "marker": {"symbol": style.symbol, "size": 8, "color": style.colour},
        "customdata": [behind] * table.height,
        "hovertext": [f"{right:,}" for right in table["right"]],
        "hovertemplate": "visit %{x}: %{y:.1%} of %{hovertext} right answers<extra></extra>",
        "yaxis": row_axis(row),
    }


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
