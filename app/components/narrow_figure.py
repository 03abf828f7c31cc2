"""A figure on half of the screen."""

from textwrap import wrap

import plotly.graph_objects as go

from analysis.theme import TEMPLATE

LINE = 105  # letters of a subtitle that fit
LINE_HEIGHT = 16  # px


def narrow(plot: go.Figure) -> go.Figure:
    """The figure with its subtitle in as many lines as it needs: Plotly would cut a long one."""
    lines = (plot.layout.title.subtitle.text or "").split("<br>")
    wrapped = [part for line in lines for part in wrap(line, LINE)]
    more = LINE_HEIGHT * max(0, len(wrapped) - len(lines))
    return go.Figure(plot).update_layout(
        title_subtitle_text="<br>".join(wrapped),
        margin_t=(plot.layout.margin.t or TEMPLATE.layout.margin.t) + more,
        height=plot.layout.height + more,
    )
