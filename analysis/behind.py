"""The rows behind a point of a figure: its `customdata`, so that a click on it can open them.

`Behind` holds fields of `analysis.browse.Filters`, as JSON has them, without the study: the screen
that draws the figure knows it. Where no filter names the rows exactly, it names the fewest that
hold them all. Lines need markers to be clicked: `UNSEEN` where none shall show.
"""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go

Behind = dict[str, Any]

# Not by opacity, of which a legend shows a fifth at least. Size: px. A browser takes long over each
# that it draws; all can be clicked.
UNSEEN = {"color": "rgba(0,0,0,0)", "size": 8, "maxdisplayed": 1}


def rollouts(*arms: str, steps: tuple[int, int] | None = None, **filters: Any) -> Behind:
    """Trajectories of training of these arms, between two steps, both included.

    filters: more fields of `Filters`; one that is None or empty is left out.
    """
    first, last = steps or (None, None)
    return _known({"arms": list(arms), "step_min": first, "step_max": last, **filters})


def samples(
    *arms: str, benchmark: str | None = None, step: int | None = None, **filters: Any
) -> Behind:
    """Evaluation samples of these arms, of one benchmark and at one step if given.

    filters: more fields of `Filters`, for example `domain`.
    """
    return _known(
        {
            "source": "evaluation",
            "arms": list(arms),
            "benchmark": benchmark,
            "step_min": step,
            "step_max": step,
            **filters,
        }
    )


def window(start: int, length: int = 10) -> tuple[int, int]:
    """The first and the last step of a window."""
    return start, start + length - 1


def clickable(plot: go.Figure) -> list[tuple[go.Scatter | go.Bar, int, Behind | None]]:
    """Every point of a figure that can be clicked: its trace, its place, what is behind it."""
    return [
        (trace, place, None if trace.customdata is None else trace.customdata[place])
        for trace in plot.data
        if trace.type == "bar" or (trace.type == "scatter" and "markers" in (trace.mode or ""))
        for place in range(len(trace.x))
    ]


def _known(fields: Behind) -> Behind:
    return {name: value for name, value in fields.items() if value is not None and value != []}


def listed(behind: Sequence[Behind]) -> list[Behind | None] | None:
    """As a trace takes it: None for a point without rows, and for a trace without any."""
    return [each or None for each in behind] if any(behind) else None
