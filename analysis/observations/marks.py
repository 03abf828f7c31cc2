"""Dots with bars, the mark of every figure of the observations, and what a number with an interval
reads like."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import repeat

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from analysis.behind import Behind, listed
from analysis.statistics import Bootstrap
from analysis.theme import Look

SHARE, CHANGE = (0.0, 1.0), (-1.0, 1.0)  # what a share, and a difference of two, can be


@dataclass(frozen=True)
class Bar:
    """A value at a place, with the ends of its bar, if it has one, and words for who hovers.

    behind: the rows that a click on it opens.
    """

    at: float | str
    value: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    behind: Behind = field(default_factory=dict)


def interval_within(made: Bootstrap, possible: tuple[float, float]) -> tuple[float, float]:
    """The 95 % interval, cut to possible values."""
    least, most = possible
    low, high = (min(max(bound, least), most) for bound in made.interval())
    return low, high


def estimated(
    estimates: Iterable[tuple[float | str, Bootstrap]],
    possible: tuple[float, float],
    behind: Sequence[Behind] = (),
) -> list[Bar]:
    """Estimates at their places, with their 95 % intervals cut to possible values.

    behind: the rows behind each, in the same order.
    """
    return [
        Bar(
            at,
            made.value,
            *interval_within(made, possible),
            f"seeds {made.seeds}, questions {made.questions}",
            rows,
        )
        for (at, made), rows in zip(estimates, behind or repeat({}), strict=False)
    ]


def add_bars(
    plot: go.Figure,
    name: str,
    bars: Sequence[Bar],
    look: Look,
    row: int = 1,
    col: int = 1,
    lines: bool = False,
    horizontal: bool = False,
    form: str = ".3f",
) -> None:
    """Draw the bars, joined by a line or not. A name is in the legend once, whatever the panels."""
    if not bars:
        return
    name = escape(name)  # Plotly reads tags in names, and an arm's may hold some
    values, places = [bar.value for bar in bars], [bar.at for bar in bars]
    error = {
        "type": "data",
        "symmetric": False,
        "array": [None if bar.high is None else bar.high - bar.value for bar in bars],
        "arrayminus": [None if bar.low is None else bar.value - bar.low for bar in bars],
        "thickness": 1.5,
        "width": 3,
    }
    plot.add_scatter(
        x=values if horizontal else places,
        y=places if horizontal else values,
        name=name,
        legendgroup=name,
        showlegend=all(trace.name != name for trace in plot.data),
        mode="lines+markers" if lines else "markers",
        line={"color": look.colour, "dash": look.dash, "width": 1.5},
        marker={"color": look.colour, "symbol": look.symbol, "size": 8},
        hovertext=[_hover(bar, form) for bar in bars],
        hovertemplate="%{hovertext}<extra>" + name + "</extra>",
        customdata=listed([bar.behind for bar in bars]),
        row=row,
        col=col,
        **{"error_x" if horizontal else "error_y": error},
    )


def arm_panels(arms: list[str], most: int) -> go.Figure:
    """A panel an arm, `most` side by side at most."""
    columns = min(most, len(arms))
    height = -(-len(arms) // columns)
    return make_subplots(
        height,
        columns,
        shared_yaxes=True,
        shared_xaxes=True,
        subplot_titles=[escape(arm) for arm in arms],
        horizontal_spacing=0.03,
        vertical_spacing=0.25 / (height + 1),
    )


def _hover(bar: Bar, form: str) -> str:
    ends = "" if bar.low is None else f" [{bar.low:{form}}, {bar.high:{form}}]"
    note = f"<br>{bar.note}" if bar.note else ""
    return f"{bar.value:{form}}{ends}{note}"


def percent(made: Bootstrap) -> str:
    """`93.1 % [91.0, 95.2]`: a share with its 95 % interval, cut to what a share can be."""
    return f"{100 * made.value:.1f} %{bounds(made, SHARE, '.1f', 100)}"


def points(made: Bootstrap) -> str:
    """`+1.2 points [-0.4, +2.9]`: a difference of shares with its 95 % interval."""
    return f"{100 * made.value:+.1f} points{bounds(made, CHANGE, '+.1f', 100)}"


def bounds(made: Bootstrap, possible: tuple[float, float], form: str, factor: float = 1) -> str:
    """` [91.0, 95.2]`: the 95 % interval, cut to what is possible, times `factor`."""
    low, high = (factor * bound for bound in interval_within(made, possible))
    if high - low < 1e-9:  # all questions alike: no draw says how they vary
        return " (every draw: no interval)"
    return f" [{low:{form}}, {high:{form}}]"
