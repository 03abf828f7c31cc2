"""One claim as a picture: this study's estimate with its interval against the threshold."""

from typing import Any

import numpy as np
import plotly.graph_objects as go

from analysis.claims import Claim, Verdict, show, show_interval
from analysis.theme import FLAWED, MUTED, VALID

HEIGHT = 180  # px
TICKS = 3


def interval_figure(claim: Claim, verdict: Verdict, rows: dict[str, Any] | None) -> go.Figure:
    """The interval, the threshold, and the effect whose power is stated; `verdict` has them.

    rows: what a click on the estimate opens, see `app.components.figure.show_figure`.
    """
    assert verdict.value is not None and verdict.low is not None and verdict.high is not None
    plot = go.Figure()
    plot.add_scatter(
        x=[verdict.value],
        y=["this study"],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [verdict.high - verdict.value],
            "arrayminus": [verdict.value - verdict.low],
            "thickness": 2.5,
            "width": 8,
        },
        mode="markers",
        marker={"size": 12, "color": VALID},
        customdata=[rows] if rows else None,
        hovertemplate=f"{show_interval(verdict, claim.unit)}<extra></extra>",
        showlegend=False,
    )
    shown = [verdict.low, verdict.high, claim.threshold]
    if claim.effect is not None:
        effect = claim.threshold + claim.effect
        plot.add_scatter(
            x=[effect],
            y=["stated effect"],
            mode="markers",
            marker={"size": 12, "symbol": "diamond-open", "color": FLAWED, "line": {"width": 2}},
            hovertemplate=f"{show(effect, claim.unit)}<extra></extra>",
            showlegend=False,
        )
        shown.append(effect)
    plot.add_vline(
        x=claim.threshold,
        line={"color": MUTED, "dash": "dash", "width": 2},
        annotation={"text": f"threshold {show(claim.threshold, claim.unit)}", "yref": "paper"},
        annotation_position="top",
    )
    ticks = np.linspace(min(shown), max(shown), TICKS)
    return plot.update_layout(
        height=HEIGHT,
        margin={"l": 16, "r": 40, "t": 30, "b": 36},
        xaxis={"tickvals": ticks, "ticktext": [show(tick, claim.unit) for tick in ticks]},
        yaxis={"type": "category", "showgrid": False, "autorange": "reversed"},
    )
