"""A map whose cells can be clicked, or framed with the mouse; the ranges go into the address."""

from collections.abc import Callable
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from analysis.maps import Axis, Box, box_to_filters
from app.components.figure import SELECTING, themed

Mouse = Literal["frame", "click"]  # Streamlit reports no click while the mouse draws frames


def map_chart(
    plot: go.Figure,
    key: str,
    x: Axis,
    y: Axis,
    mouse: Mouse,
    on_box: Callable[[Box], None],
    alt: str,
) -> None:
    """Draw the map. `key` must change with the box: the frame of the mouse then gives way to it."""

    def selected() -> None:
        event: Any = st.session_state[key]
        box = box_to_filters(event["selection"], x, y)
        if box is not None:
            on_box(box)

    st.plotly_chart(
        themed(plot).update_layout(dragmode="select" if mouse == "frame" else False),
        theme=None,
        key=key,
        on_select=selected,
        selection_mode="box" if mouse == "frame" else "points",
        config=SELECTING,
        alt=alt,
    )
