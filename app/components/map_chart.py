"""Maps whose cells can be clicked, or framed with the mouse; the ranges go into the address."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import plotly.graph_objects as go
import streamlit as st

from analysis.maps import Axis, Box, box_to_filters, selected_row
from app.components.figure import SELECTING, themed

Mouse = Literal["frame", "click"]  # Streamlit reports no click while the mouse draws frames


def map_chart(
    plot: go.Figure,
    key: str,
    arms: Sequence[str],
    x: Axis,
    y: Axis,
    mouse: Mouse,
    on_box: Callable[[str, Box], None],
    alt: str,
) -> None:
    """Draw `analysis.maps.draw_map`; `on_box` gets the arm and the box.

    `key` must change with the box: the frame of the mouse then gives way to it.
    """

    def selected() -> None:
        selection: Any = st.session_state[key]["selection"]
        box, row = box_to_filters(selection, x, y), selected_row(selection)
        if box is not None and row < len(arms):
            on_box(arms[row], box)

    st.plotly_chart(
        themed(plot).update_layout(dragmode="select" if mouse == "frame" else False),
        theme=None,
        key=key,
        on_select=selected,
        selection_mode="box" if mouse == "frame" else "points",
        config=SELECTING,
        alt=alt,
    )
