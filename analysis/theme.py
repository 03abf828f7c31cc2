"""How every figure looks: one template, and one colour, symbol and dash for each arm.

The colours are those of Okabe and Ito, which people with colour-blindness can tell apart; symbol
and dash tell the arms apart in a black and white print.
"""

from dataclasses import dataclass
from zlib import crc32

import plotly.graph_objects as go

FONT = "Inter, 'Segoe UI', Helvetica, Arial, sans-serif"
INK, MUTED, GRID = "#1d2733", "#5b6673", "#e3e7ec"
VALID, FLAWED = "#0072B2", "#D55E00"
WIDTH, HEIGHT = 920, 460

# Plotly's own default shows a button that uploads the figure's data to its makers' server.
PLOT_CONFIG = {
    "showSendToCloud": False,
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "zoomIn2d", "zoomOut2d", "autoScale2d"],
}


@dataclass(frozen=True)
class Look:
    """How one arm is drawn, everywhere."""

    colour: str
    symbol: str
    dash: str


LOOKS = {
    "base": Look("#6B6B6B", "x", "dot"),
    "on_policy": Look("#0072B2", "circle", "solid"),
    "exgrpo": Look("#D55E00", "diamond", "solid"),
    "highest_entropy": Look("#CC79A7", "triangle-up", "dash"),
    "question_replay": Look("#009E73", "square", "dashdot"),
    "no_trajectory_selection": Look("#E69F00", "triangle-down", "longdash"),
    "on_policy_no_clip": Look("#56B4E9", "cross", "longdashdot"),
}
_COLOURS = ("#7F6A00", "#4B3B8F", "#8C2D04", "#1B7F79", "#A6256A", "#333333")
_SYMBOLS = ("star", "hexagon", "pentagon", "bowtie", "hourglass", "star-diamond", "asterisk")
_DASHES = ("solid", "dot", "dash", "dashdot", "longdash")


def look(arm: str) -> Look:
    """The look of an arm; arms not named above get one by their name, so that it never changes."""
    number = crc32(arm.encode())
    return LOOKS.get(arm) or Look(
        *(kinds[number % len(kinds)] for kinds in (_COLOURS, _SYMBOLS, _DASHES))
    )


def faded(colour: str, alpha: float = 0.15) -> str:
    """A hex colour as rgba, for bands."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"


def _axis(muted: str, grid: str) -> dict[str, object]:
    return {
        "showgrid": True,
        "gridcolor": grid,
        "zeroline": False,
        "linecolor": muted,
        "showline": True,
        "ticks": "outside",
        "tickcolor": muted,
        "title": {"font": {"size": 13}, "standoff": 10},
        "automargin": True,
    }


def _template(paper: str, ink: str, muted: str, grid: str) -> go.layout.Template:
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink},
            "title": {
                "x": 0,
                "xref": "container",
                "pad": {"l": 16},
                "y": 0.96,
                "yanchor": "top",
                "font": {"size": 17},
                "subtitle": {"font": {"size": 12, "color": muted}},
            },
            "paper_bgcolor": paper,
            "plot_bgcolor": paper,
            "margin": {"l": 64, "r": 24, "t": 96, "b": 56},
            "xaxis": _axis(muted, grid),
            "yaxis": _axis(muted, grid),
            "hoverlabel": {"font": {"family": FONT}},
            "legend": {
                **{"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
                "title": {"text": ""},
            },
            "colorway": [entry.colour for entry in LOOKS.values()],
        }
    )


TEMPLATE = _template("white", INK, MUTED, GRID)
DARK = _template("#15181b", "#dfe3e6", "#9aa4ae", "#2c3238")  # as in .streamlit/config.toml
