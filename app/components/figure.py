"""A figure on a screen: in the page's theme, and with the rows behind each point one click away."""

from html import unescape
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from analysis.theme import DARK, PLOT_CONFIG, TEMPLATE, recoloured
from app.components.plain import plain
from app.links import open_rows

SELECTING = {**PLOT_CONFIG, "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d"]}
TITLE_ROOM = 76  # px that a title with its subtitle takes of a figure


def show_figure(plot: go.Figure, key: str, alt: str = "", **common: Any) -> None:
    """Draw a figure. A click on a point opens the rows that its `customdata` names.

    `customdata` of a point is a dictionary of fields of `analysis.browse.Filters`, or of
    `trajectory` (see `analysis.behind`); `common` holds more of them, for all points. Points
    without it open nothing. Only markers can be clicked: a line needs some, which may be invisible.
    """
    event: Any = st.plotly_chart(
        themed(plot),
        theme=None,
        key=key,
        on_select="rerun",
        selection_mode="points",
        config=PLOT_CONFIG,
        alt=alt or None,
    )
    for point in event["selection"]["points"]:
        if isinstance(behind := point.get("customdata"), dict):
            open_rows(**{**common, **behind})


def show_titled(plot: go.Figure, key: str, **common: Any) -> None:
    """Draw a figure with its title as text above it, which fits any width.

    Of the subtitle only the last line, on bands and bars: the others name the study, as the page.
    """
    title = plot.layout.title
    name, meaning = unescape(title.text or ""), _last_line(title.subtitle.text)
    st.markdown(f"**{plain(name)}**")
    if meaning:
        st.caption(plain(meaning))
    show_figure(untitled(plot), key, alt=f"{name} {meaning}", **common)


def untitled(plot: go.Figure) -> go.Figure:
    """The same figure without title and subtitle, and without the room for them."""
    top = plot.layout.margin.t or TEMPLATE.layout.margin.t
    plot.update_layout(title=None, margin_t=max(24, top - TITLE_ROOM))
    if plot.layout.height:
        plot.update_layout(height=plot.layout.height - TITLE_ROOM)
    return plot


def themed(plot: go.Figure) -> go.Figure:
    """The figure in the look of the page: the same one if it is light, another if it is dark.

    Figures are neither checked again nor copied: both take longer than to draw them.
    """
    if st.context.theme.type != "dark":
        return plot.update_layout(template=TEMPLATE)
    return go.Figure(recoloured(plot.to_dict()), _validate=False).update_layout(template=DARK)


def _last_line(markup: str | None) -> str:
    """What Plotly makes of it, its escapes undone."""
    return unescape((markup or "").rpartition("<br>")[2])
