"""One question over the training: what its rollouts and its bucket did, one figure an arm.

The strips of a figure share the axis of steps, so that a visit, its rollouts and the move of the
bucket that they caused stand above one another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis import behind
from analysis.behind import UNSEEN, Behind, listed
from analysis.theme import FLAWED, INK, MUTED, TEMPLATE, VALID, look

DASHES = ("solid", "dot", "dash", "dashdot", "longdash")  # a seed each, over and over
STRIP = 150  # px
AROUND = 130  # px: title, axis, legend
SPREAD = 0.16  # buckets: how far the lines of the seeds lie apart


@dataclass(frozen=True)
class Extent:
    """What the figures of all arms share: the last step, the greatest value, K."""

    last: int
    value: float
    size: int


@dataclass(frozen=True)
class Kind:
    """How one kind of rollout is drawn: by colour and by symbol."""

    name: str
    colour: str
    symbol: str
    size: int


KINDS = {
    (False, True): Kind("right", VALID, "circle", 6),
    (False, False): Kind("wrong", FLAWED, "x", 6),
    (False, None): Kind("ungraded", MUTED, "square-open", 6),
    (True, True): Kind("↻ replayed, right", VALID, "diamond-open", 8),
    (True, False): Kind("↻ replayed, wrong", FLAWED, "diamond-x-open", 8),
    (True, None): Kind("↻ replayed, ungraded", MUTED, "diamond-cross-open", 8),
}
EVENTS = {
    "entered": "triangle-up",
    "returned": "triangle-up-open",
    "retired": "star",
    "left": "x",
    "evicted": "x-open",
}
VALUES = {"mean_entropy": "entropy (nat/token)", "length": "length (tokens)"}


def drawn_value(rollouts: pl.DataFrame) -> str | None:
    """The column that the rollouts are drawn by: entropy, else length, where any is known."""
    return next((name for name in VALUES if rollouts[name].count()), None)


def extent(visits: pl.DataFrame, rollouts: pl.DataFrame, last: int | None) -> Extent:
    """Room for everything in these rows and for step `last`."""
    value = drawn_value(rollouts)
    top: Any = rollouts[value].max() if value else 0.0
    end: Any = visits["step"].max()
    size: Any = visits["size"].max()
    return Extent(max(end or 1, last or 1), float(top or 1.0), int(size or 1))


def question_timeline(
    arm: str,
    visits: pl.DataFrame,
    rollouts: pl.DataFrame,
    events: pl.DataFrame,
    room: Extent,
    marked: str | None = None,
) -> go.Figure:
    """Share right at each visit, every rollout, and the bucket, by step; the runs of one arm.

    Rows of the queries `question_visits`, `question_rollouts` and `question_events`. A strip
    without data is left out. `marked`: a trajectory that gets a ring, with its replays.
    """
    value = drawn_value(rollouts)
    strips = ["share right"]
    strips += [VALUES[value]] if value else []
    strips += ["bucket (k)"] if events.height else []
    plot = make_subplots(
        rows=len(strips),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.06,
        row_heights=[1.4 if title in VALUES.values() else 1.0 for title in strips],
    )
    dashes = {run: DASHES[i % len(DASHES)] for i, run in enumerate(_runs(visits))}
    for run, dash in dashes.items():
        _add_visits(plot, arm, visits.filter(pl.col("run") == run), dash)
    if value:
        _add_rollouts(plot, rollouts, value, marked)
    if events.height:
        for place, (run, dash) in enumerate(dashes.items()):
            shift = SPREAD * (place - (len(dashes) - 1) / 2)
            its = events.filter(pl.col("run") == run)
            _add_buckets(plot, len(strips), arm, its, dash, shift, room)
        plot.update_yaxes(
            row=len(strips),
            range=[-0.6, room.size + 0.6],
            tickvals=[0, *range(1, room.size), room.size] if room.size <= 9 else None,
            ticktext=["out", *map(str, range(1, room.size)), "retired"] if room.size <= 9 else None,
        )
        _add_events(plot, len(strips), events, dashes, room)
    for row, title in enumerate(strips, 1):
        plot.update_yaxes(title=title, row=row)
    plot.update_yaxes(range=[-0.06, 1.06], tickformat=".0%", row=1)
    if value:
        plot.update_yaxes(range=[-0.04 * room.value, 1.06 * room.value], row=2)
    plot.update_xaxes(range=[-0.02 * room.last, 1.03 * room.last])
    plot.update_xaxes(title="step", row=len(strips))
    return plot.update_layout(
        template=TEMPLATE,
        title={"text": escape(arm), "font_size": 15, "y": 0.985},
        height=STRIP * len(strips) + AROUND,
        margin={"l": 60, "r": 12, "t": 44, "b": 80},
        legend={"y": -0.13 if len(strips) > 2 else -0.2, "font_size": 11},
        hoverlabel_align="left",
    )


def bucket_line(events: pl.DataFrame, last: int) -> tuple[list[int], list[int | None]]:
    """Steps and buckets of a line that is drawn in steps; None where the question lies in none.

    `events`: rows of one run and question, in order. A question still inside goes on to `last`.
    """
    steps: list[int] = []
    buckets: list[int | None] = []
    now: int | None = None
    for event in events.iter_rows(named=True):
        after = event["bucket_after"]
        if event["event"] in ("stored", "replayed") or (now is None and after is None):
            continue
        if now is not None:
            steps.append(event["step"])
            buckets.append(now)
        steps.append(event["step"])
        buckets.append(after)
        now = after
    if now is not None:
        steps.append(max(last, steps[-1]))
        buckets.append(now)
    return steps, buckets


def rollouts_by_slot(rollouts: pl.DataFrame, marked: str | None = None) -> go.Figure:
    """The rollouts of a question where there is one step only: slot by run."""
    rows = rollouts.with_columns(run=pl.Series([escape(run) for run in rollouts["run"]]))
    plot = go.Figure()
    for kind, its in _kinds(rows):
        plot.add_scatter(
            x=its["slot"].to_list(),
            y=its["run"].to_list(),
            **_dots(kind, its, 11),
        )
    _add_ring(plot, rows, "slot", "run", marked)
    runs = list(dict.fromkeys(rows["run"]))
    plot.update_xaxes(title="slot in the group", dtick=1)
    plot.update_yaxes(type="category", categoryorder="array", categoryarray=runs[::-1])
    return plot.update_layout(
        template=TEMPLATE,
        height=130 + 40 * len(runs),
        margin={"t": 16, "b": 90},
        legend_y=-0.5 if len(runs) < 3 else -0.25,
    )


def accuracy_by_checkpoint(evaluations: pl.DataFrame) -> go.Figure:
    """Share of right samples by checkpoint and arm: rows of `question_evaluations`."""
    plot = go.Figure()
    for (arm,), its in evaluations.group_by("arm", maintain_order=True):
        style = look(str(arm))
        plot.add_scatter(
            x=its["step"].to_list(),
            y=its["accuracy"].to_list(),
            name=escape(str(arm)),
            mode="lines+markers",
            line={"color": style.colour, "dash": style.dash, "width": 1.8},
            marker={"symbol": style.symbol, "size": 8, "color": style.colour},
            hovertext=[
                f"step {row['step']}: {row['right']} of {row['samples']} samples right"
                for row in its.iter_rows(named=True)
            ],
            hovertemplate="%{hovertext}<extra>" + escape(str(arm)) + "</extra>",
            customdata=listed([_samples(row) for row in its.iter_rows(named=True)]),
        )
    plot.update_xaxes(title="step of the checkpoint")
    plot.update_yaxes(title="samples right", range=[-0.06, 1.06], tickformat=".0%")
    return plot.update_layout(template=TEMPLATE, height=300, margin={"t": 16, "b": 90})


def _samples(row: dict[str, Any]) -> Behind:
    return behind.samples(
        row["arm"], benchmark=row["benchmark"], step=row["step"], question=row["question"]
    )


def visit_rows(row: dict[str, Any]) -> Behind:
    """The rows behind a visit or an event: its run, question and step."""
    return behind.rollouts(
        run=row["run"], question=row["question"], steps=(row["step"], row["step"])
    )


def _runs(visits: pl.DataFrame) -> list[str]:
    return visits.sort("seed", "run")["run"].unique(maintain_order=True).to_list()


def _seed(row: dict[str, Any]) -> str:
    return escape(str(row["run"])) if row["seed"] is None else f"seed {row['seed']}"


def _add_visits(plot: go.Figure, arm: str, visits: pl.DataFrame, dash: str) -> None:
    rows = list(visits.iter_rows(named=True))
    plot.add_scatter(
        x=[row["step"] for row in rows],
        y=[row["success_share"] for row in rows],
        name=_seed(rows[0]),
        legendgroup=_seed(rows[0]),
        mode="lines+markers",
        line={"color": look(arm).colour, "dash": dash, "width": 1.3},
        marker={
            "color": look(arm).colour,
            "size": 6,
            "symbol": ["diamond" if row["replayed"] else "circle-open" for row in rows],
        },
        hovertext=[_visit_words(row) for row in rows],
        hovertemplate="%{hovertext}<extra></extra>",
        customdata=listed([visit_rows(row) for row in rows]),
        row=1,
        col=1,
    )


def _visit_words(row: dict[str, Any]) -> str:
    words = f"{_seed(row)}, step {row['step']}: {row['right']} of {row['graded']} right"
    drawn = row["bucket_drawn"]
    words += f"<br>drawn from bucket {drawn}" if drawn is not None else "<br>from the fresh stream"
    return words + (f", {row['replayed']} replayed" if row["replayed"] else "")


def _kinds(rollouts: pl.DataFrame) -> Iterable[tuple[Kind, pl.DataFrame]]:
    for (replayed, correct), kind in KINDS.items():
        its = rollouts.filter(
            pl.col("replayed").fill_null(False).eq(replayed)
            & pl.col("correct").eq_missing(pl.lit(correct, pl.Boolean))
        )
        if its.height:
            yield kind, its


def _dots(kind: Kind, its: pl.DataFrame, size: int) -> dict[str, Any]:
    return {
        "name": kind.name,
        "legendgroup": kind.name,
        "mode": "markers",
        "marker": {
            "color": kind.colour,
            "symbol": kind.symbol,
            "size": size,
            "opacity": 0.75,
            "line_width": 1.4 if "open" in kind.symbol else 0,
        },
        "hovertext": [_rollout_words(row, kind) for row in its.iter_rows(named=True)],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": [{"trajectory": id} for id in its["trajectory"]],
    }


def _rollout_words(row: dict[str, Any], kind: Kind) -> str:
    words = f"{_seed(row)}, step {row['step']}, slot {row['slot']}: {kind.name}"
    if row["mean_entropy"] is not None:
        words += f"<br>entropy {row['mean_entropy']:.3f} nat/token"
    return words + (f"<br>{row['length']} tokens" if row["length"] is not None else "")


def _add_rollouts(plot: go.Figure, rows: pl.DataFrame, value: str, marked: str | None) -> None:
    for kind, its in _kinds(rows):
        plot.add_scatter(
            x=its["step"].to_list(),
            y=its[value].to_list(),
            **_dots(kind, its, kind.size),
            row=2,
            col=1,
        )
    _add_ring(plot, rows, "step", value, marked, row=2, col=1)


def _add_ring(
    plot: go.Figure, rows: pl.DataFrame, x: str, y: str, marked: str | None, **place: int
) -> None:
    if marked is None:
        return
    its = rows.filter((pl.col("trajectory") == marked) | (pl.col("source") == marked))
    if its.is_empty():
        return
    plot.add_scatter(
        x=its[x].to_list(),
        y=its[y].to_list(),
        name="the chosen trajectory",
        mode="markers",
        marker={"symbol": "circle-open", "size": 16, "color": INK, "line_width": 2},
        hoverinfo="skip",
        customdata=[{"trajectory": id} for id in its["trajectory"]],
        **place,
    )


def _add_buckets(
    plot: go.Figure,
    row: int,
    arm: str,
    events: pl.DataFrame,
    dash: str,
    shift: float,
    room: Extent,
) -> None:
    steps, buckets = bucket_line(events, room.last)
    if not steps:
        return
    plot.add_scatter(
        x=steps,
        y=[None if bucket is None else bucket + shift for bucket in buckets],
        mode="lines+markers",
        marker=UNSEEN,
        line={"color": look(arm).colour, "dash": dash, "width": 1.6, "shape": "hv"},
        hovertext=[f"{_seed(events.row(0, named=True))}: bucket {bucket}" for bucket in buckets],
        hovertemplate="%{hovertext}<extra></extra>",
        legendgroup=_seed(events.row(0, named=True)),
        showlegend=False,
        row=row,
        col=1,
    )


def _add_events(
    plot: go.Figure, row: int, events: pl.DataFrame, dashes: dict[str, str], room: Extent
) -> None:
    places = {run: place - (len(dashes) - 1) / 2 for place, run in enumerate(dashes)}
    for event, symbol in EVENTS.items():
        its = list(events.filter(pl.col("event") == event).iter_rows(named=True))
        if not its:
            continue
        plot.add_scatter(
            x=[each["step"] for each in its],
            y=[_level(each, room.size) + SPREAD * places[each["run"]] for each in its],
            name=event,
            mode="markers",
            marker={"symbol": symbol, "size": 9, "color": INK},
            hovertext=[_event_words(each) for each in its],
            hovertemplate="%{hovertext}<extra></extra>",
            customdata=[visit_rows(each) for each in its],
            row=row,
            col=1,
        )


def _level(event: dict[str, Any], size: int) -> int:
    """Where an event is drawn: in the bucket after it; retired on top, out of the buffer at 0."""
    if event["event"] == "retired":
        return size
    return int(event["bucket_after"] or 0)


def _event_words(event: dict[str, Any]) -> str:
    before, after = event["bucket_before"], event["bucket_after"]
    words = f"{_seed(event)}, step {event['step']}: {event['event']}"
    if before != after:
        words += f", bucket {before if before is not None else 'none'}"
        words += f" → {after if after is not None else 'none'}"
    elif after is not None:
        words += f", bucket {after}"
    return words
