"""How every figure looks: one template, and one colour, symbol and dash for each arm.

The colours are those of Okabe and Ito, which people with colour-blindness can tell apart, two of
them darker so that they show on white; symbol and dash tell the arms apart in a black and white
print. On a dark page every colour that is too dark there is drawn lighter (`on_dark`).
"""

import re
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import plotly.graph_objects as go

FONT = "Inter, 'Segoe UI', Helvetica, Arial, sans-serif"
INK, MUTED, GRID = "#1d2733", "#5b6673", "#e3e7ec"
BLUE, VERMILLION, GREEN, PINK = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
ORANGE, SKY = "#B58B00", "#3A97CC"
VALID, FLAWED = BLUE, VERMILLION
PAPER, DARK_PAPER = "#ffffff", "#15181b"  # the dark one as in .streamlit/config.toml
LEAST_CONTRAST = 3.0  # of a mark against the paper: WCAG 2.2, 1.4.11
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
    "on_policy": Look(BLUE, "circle", "solid"),
    "exgrpo": Look(VERMILLION, "diamond", "solid"),
    "highest_entropy": Look(PINK, "triangle-up", "dash"),
    "question_replay": Look(GREEN, "square", "dashdot"),
    "no_trajectory_selection": Look(ORANGE, "triangle-down", "longdash"),
    "on_policy_no_clip": Look(SKY, "cross", "longdashdot"),
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
    red, green, blue = _channels(colour)
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


DARK_INK, DARK_MUTED, DARK_GRID = "#dfe3e6", "#9aa4ae", "#2c3238"
TEMPLATE = _template(PAPER, INK, MUTED, GRID)
DARK = _template(DARK_PAPER, DARK_INK, DARK_MUTED, DARK_GRID)
_ON_DARK = {INK: DARK_INK, MUTED: DARK_MUTED, GRID: DARK_GRID, PAPER: DARK_PAPER}
_RGBA = re.compile(r"rgba\((\d+),(\d+),(\d+),([\d.]+)\)")  # as `faded` writes it


def contrast(one: str, other: str) -> float:
    """The contrast of two hex colours, 1 (none) to 21, as WCAG 2.2 defines it."""
    dark, light = sorted(_luminance(colour) + 0.05 for colour in (one, other))
    return light / dark


def on_dark(colour: str) -> str:
    """What a hex colour, or one of `faded`, is on a dark page; any other text stays as it is.

    Inks change places; a colour with too little contrast is mixed with white until it has enough.
    """
    if found := _RGBA.fullmatch(colour):
        *channels, alpha = found.groups()
        return faded(on_dark(_hex([int(channel) for channel in channels])), float(alpha))
    if not re.fullmatch("#[0-9a-fA-F]{6}", colour):
        return colour
    if colour in _ON_DARK:
        return _ON_DARK[colour]
    lighter, parts = colour, _channels(colour)
    while contrast(lighter, DARK_PAPER) < LEAST_CONTRAST:
        parts = [part + max(1, (255 - part) // 10) for part in parts]
        lighter = _hex(parts)
    return lighter


def recoloured(part: Any) -> Any:
    """A figure as a dictionary, or a part of one, with its colours as on a dark page.

    Lists of colours stay: they are scales, whose order would suffer.
    """
    if isinstance(part, dict):
        return {
            key: on_dark(value)
            if isinstance(value, str) and key.endswith("color")
            else value
            if key in DATA
            else recoloured(value)
            for key, value in part.items()
        }
    if isinstance(part, list | tuple):
        return [recoloured(item) for item in part]
    return part


DATA = ("x", "y", "z", "text", "hovertext", "customdata", "template", "meta")  # without a colour


def _channels(colour: str) -> list[int]:
    return [int(colour[at : at + 2], 16) for at in (1, 3, 5)]


def _hex(channels: list[int]) -> str:
    return "#" + "".join(f"{channel:02x}" for channel in channels)


def _luminance(colour: str) -> float:
    shares = [channel / 255 for channel in _channels(colour)]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return sum(w * s for w, s in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
