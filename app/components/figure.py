"""A figure on a screen: in the page's theme, and with the rows behind each point one click away."""

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from analysis.theme import DARK, PLOT_CONFIG, TEMPLATE
from app.links import open_rows

SELECTING = {**PLOT_CONFIG, "modeBarButtonsToRemove": ["zoomIn2d", "zoomOut2d", "autoScale2d"]}


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
        if behind := point.get("customdata"):
            open_rows(**{**common, **behind})


def themed(plot: go.Figure) -> go.Figure:
    """A copy of the figure in the light or dark look of the page."""
    dark = st.context.theme.type == "dark"
    return go.Figure(plot).update_layout(template=DARK if dark else TEMPLATE)
