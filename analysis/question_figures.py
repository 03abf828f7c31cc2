"""One question over the training: how the arms fared, what rollouts and bucket did in one of them.

The strips of the figure share the axis of steps, so that a visit, its rollouts and the move of the
bucket that they caused stand above one another.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import cycle
from typing import Any

import plotly.graph_objects as go
import polars as pl

from analysis import behind
from analysis.behind import UNSEEN, Behind, listed
from analysis.theme import FLAWED, INK, MUTED, TEMPLATE, VALID, look

DASHES = ("solid", "dot", "dash", "dashdot", "longdash")  # a seed each, over and over
STRIP = 150  # px
GAP = 0.05  # of the height, between two strips
AROUND = 100  # px: axis and legend
SPREAD = 0.16  # buckets: how far the lines of the seeds lie apart


@dataclass(frozen=True)
class Extent:
    """How far the axes go: the last step, the greatest value, K."""

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
    """By step: share right at each visit in every arm; each rollout and the bucket of one arm.

    Rows of the queries `question_visits`, `question_rollouts` and `question_events`; the latter two
    are of `arm`. A strip without data is left out. `marked`: a trajectory that gets a ring, with
    its replays.
    """
    value = drawn_value(rollouts)
    strips = ["share right"]
    strips += [VALUES[value]] if value else []
    strips += ["bucket (k)"] if events.height else []
    data = [
        _visit_line(str(each), its, each == arm)
        for (each,), its in visits.group_by("arm", maintain_order=True)
    ]
    axes: list[dict[str, Any]] = [{"range": [-0.06, 1.06], "tickformat": ".0%"}]
    if value:
        data += _rollout_dots(rollouts, value, marked)
        axes.append({"range": [-0.04 * room.value, 1.06 * room.value]})
    if events.height:
        data += _bucket_lines(arm, events, room, f"y{len(strips)}")
        axes.append(_bucket_axis(room.size))
    # Unchecked: to check every value of thousands of dots takes longer than to draw them.
    figure = {"data": data, "layout": _layout(strips, axes, room)}
    return go.Figure(figure, _validate=False)


def _layout(strips: list[str], axes: list[dict[str, Any]], room: Extent) -> dict[str, Any]:
    """The strips from top to bottom over one axis of steps."""
    heights = [1.4 if title in VALUES.values() else 1.0 for title in strips]
    unit = (1 - GAP * (len(strips) - 1)) / sum(heights)
    layout: dict[str, Any] = {}
    top = 1.0
    for place, (title, height, axis) in enumerate(zip(strips, heights, axes, strict=True), 1):
        bottom = max(0.0, top - height * unit)
        name = "yaxis" if place == 1 else f"yaxis{place}"
        layout[name] = {"title": {"text": title}, "domain": [bottom, top], "anchor": "x", **axis}
        top = bottom - GAP
    return {
        **layout,
        "xaxis": {
            "title": {"text": "step"},
            "range": [-0.02 * room.last, 1.03 * room.last],
            "anchor": "y" if len(strips) == 1 else f"y{len(strips)}",
        },
        "template": TEMPLATE,
        "height": STRIP * len(strips) + AROUND,
        "margin": {"l": 60, "r": 12, "t": 16, "b": 80},
        "legend": {"y": -0.13 if len(strips) > 2 else -0.2, "font": {"size": 11}},
        "hoverlabel": {"align": "left"},
    }


def _bucket_axis(size: int) -> dict[str, Any]:
    axis: dict[str, Any] = {"range": [-0.6, size + 0.6]}
    if size <= 9:
        axis["tickvals"] = [0, *range(1, size), size]
        axis["ticktext"] = ["out", *map(str, range(1, size)), "retired"]
    return axis


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
    dots = [
        {"x": its["slot"].to_list(), "y": its["run"].to_list(), **_dots(kind, its, 11)}
        for kind, its in _kinds(rows)
    ]
    plot = go.Figure([*dots, *_ring(rows, "slot", "run", marked)])
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


def _seed(row: dict[str, Any]) -> str:
    return escape(str(row["run"])) if row["seed"] is None else f"seed {row['seed']}"


def _visit_line(arm: str, visits: pl.DataFrame, chosen: bool) -> dict[str, Any]:
    """The runs of an arm as one line with a gap between two runs."""
    rows: list[dict[str, Any] | None] = []
    for _, its in visits.sort("seed", "run", "step").group_by("run", maintain_order=True):
        rows += [*([None] if rows else []), *its.iter_rows(named=True)]
    style = look(arm)
    return {
        "type": "scatter",
        "x": [row and row["step"] for row in rows],
        "y": [row and row["success_share"] for row in rows],
        "name": escape(arm),
        "mode": "lines+markers",
        "opacity": 1 if chosen else 0.55,
        "line": {"color": style.colour, "dash": style.dash, "width": 2 if chosen else 1.2},
        "marker": {
            "color": style.colour,
            "size": 6,
            "symbol": ["diamond" if row and row["replayed"] else "circle-open" for row in rows],
        },
        "hovertext": [row and f"{escape(arm)}, {_visit_words(row)}" for row in rows],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "customdata": listed([visit_rows(row) if row else {} for row in rows]),
    }


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
        "type": "scatter",
        "name": kind.name,
        "legendgroup": kind.name,
        "mode": "markers",
        "marker": {
            "color": kind.colour,
            "symbol": kind.symbol,
            "size": size,
            "opacity": 0.75,
            "line": {"width": 1.4 if "open" in kind.symbol else 0},
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


def _rollout_dots(rows: pl.DataFrame, value: str, marked: str | None) -> list[dict[str, Any]]:
    dots = [
        {"x": its["step"].to_list(), "y": its[value].to_list(), **_dots(kind, its, kind.size)}
        for kind, its in _kinds(rows)
    ]
    return [trace | {"yaxis": "y2"} for trace in (*dots, *_ring(rows, "step", value, marked))]


def _ring(rows: pl.DataFrame, x: str, y: str, marked: str | None) -> list[dict[str, Any]]:
    """Around the marked trajectory and its replays, where they are among the rows."""
    its = rows.filter(pl.any_horizontal(pl.col("trajectory", "source") == pl.lit(marked)))
    if its.is_empty():
        return []
    return [
        {
            "type": "scatter",
            "x": its[x].to_list(),
            "y": its[y].to_list(),
            "name": "the chosen trajectory",
            "mode": "markers",
            "marker": {
                "symbol": "circle-open",
                "size": 16,
                "color": INK,
                "line": {"width": 2},
            },
            "hoverinfo": "skip",
            "customdata": [{"trajectory": id} for id in its["trajectory"]],
        }
    ]


def _bucket_lines(arm: str, events: pl.DataFrame, room: Extent, axis: str) -> list[dict[str, Any]]:
    """A line a run, a little apart, and a mark wherever the question came, went or retired."""
    runs = events.sort("seed", "run")["run"].unique(maintain_order=True).to_list()
    shifts = {run: SPREAD * (place - (len(runs) - 1) / 2) for place, run in enumerate(runs)}
    traces: list[dict[str, Any]] = []
    for run, dash in zip(runs, cycle(DASHES), strict=False):
        its = events.filter(pl.col("run") == run)
        steps, buckets = bucket_line(its, room.last)
        visits = {row["step"]: visit_rows(row) for row in its.iter_rows(named=True)}
        seed = _seed(its.row(0, named=True))
        if not steps:
            continue
        traces.append(
            {
                "x": steps,
                "y": [None if bucket is None else bucket + shifts[run] for bucket in buckets],
                "name": f"bucket, {seed}",
                "mode": "lines+markers",
                "marker": UNSEEN,
                "line": {"color": look(arm).colour, "dash": dash, "width": 1.6, "shape": "hv"},
                "hovertext": [f"{seed}: bucket {bucket}" for bucket in buckets],
                "customdata": listed([visits.get(step, {}) for step in steps]),
            }
        )
    for event, symbol in EVENTS.items():
        marks = list(events.filter(pl.col("event") == event).iter_rows(named=True))
        if not marks:
            continue
        traces.append(
            {
                "x": [each["step"] for each in marks],
                "y": [_level(each, room.size) + shifts[each["run"]] for each in marks],
                "name": event,
                "mode": "markers",
                "marker": {"symbol": symbol, "size": 9, "color": INK},
                "hovertext": [_event_words(each) for each in marks],
                "customdata": [visit_rows(each) for each in marks],
            }
        )
    common = {"type": "scatter", "yaxis": axis, "hovertemplate": "%{hovertext}<extra></extra>"}
    return [common | trace for trace in traces]


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
