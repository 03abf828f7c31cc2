"""One figure with a row an arm over one axis x: quicker to draw than a figure an arm, easier to
compare, and as wide as any page."""

from collections.abc import Sequence
from html import escape
from typing import Any

from analysis.theme import TEMPLATE

TOP, GAP = 30, 34  # px above the first row and between two: room for an arm's name
BELOW = 60  # px for the axis x and its title


def row_axis(row: int) -> str:
    """What the traces of a row, from 0, have as `yaxis`; as `xaxis` all have `x`."""
    return "y" if row == 0 else f"y{row + 1}"


def row_of(axis: str) -> int:
    """The inverse of `row_axis`; 0 for what is no such name."""
    return max(int(axis[1:]) - 1, 0) if axis[1:].isdigit() else 0


def rows_layout(
    arms: Sequence[str], x: dict[str, Any], y: dict[str, Any], height: int, legend: int = 0
) -> dict[str, Any]:
    """The layout: rows of `height` px, each with its arm's name above it.

    x, y: what is particular about the axes. legend: px below for a legend of the whole figure.
    """
    area = len(arms) * height + (len(arms) - 1) * GAP
    tops = [1 - row * (height + GAP) / area for row in range(len(arms))]
    layout: dict[str, Any] = {
        "template": TEMPLATE,
        "height": TOP + area + BELOW + legend,
        "margin": {"l": 56, "r": 12, "t": TOP, "b": BELOW + legend},
        "legend": {"y": -BELOW / area},
        "hovermode": "closest",
        "xaxis": {"anchor": row_axis(len(arms) - 1), **x},
        "annotations": [
            {
                **{"text": f"<b>{escape(arm)}</b>", "showarrow": False},
                **{"x": 0, "xref": "paper", "xanchor": "left"},
                **{"y": top, "yref": "paper", "yanchor": "bottom"},
            }
            for arm, top in zip(arms, tops, strict=True)
        ],
    }
    for row, top in enumerate(tops):
        bottom = max(0.0, top - height / area)
        layout[f"yaxis{row_axis(row)[1:]}"] = {"anchor": "x", "domain": [bottom, top], **y}
    return layout
