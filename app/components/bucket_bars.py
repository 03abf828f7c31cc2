"""How many questions had k of K right answers."""

import plotly.graph_objects as go
import polars as pl

from analysis.behind import Behind, rollouts
from analysis.theme import TEMPLATE
from app.components.answers import right_of


def bucket_bars(buckets: pl.DataFrame) -> go.Figure:
    """Rows of the query `run_buckets` as bars, one a pair of k and K; a bar opens its groups."""
    figure = go.Figure(
        go.Bar(
            x=[right_of(*key) for key in buckets.select("group_successes", "group_size").rows()],
            y=buckets["groups"].to_list(),
            text=buckets["groups"].to_list(),
            customdata=[_behind(k) for k in buckets["group_successes"]],
            hovertemplate="right answers: %{x}<br>questions: %{y}<extra></extra>",
        )
    )
    figure.update_xaxes(title="right answers in the group", type="category")
    figure.update_yaxes(title="questions")
    return figure.update_layout(template=TEMPLATE, height=320, margin={"t": 20, "b": 50})


def _behind(successes: int | None) -> Behind:
    return rollouts(bucket=None if successes is None else [successes])
