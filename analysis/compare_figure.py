"""A dot a question: the accuracy of side B against that of side A."""

from html import escape
from random import Random

import plotly.graph_objects as go
import polars as pl

from analysis.pairs import FLIPS, Flip
from analysis.theme import MUTED, TEMPLATE

MOST = 2000  # dots; more make the browser slow
JITTER = 0.02  # share: the most that a dot is moved, so that equal ones can be told apart
HEIGHT = 500  # px

_LOOKS: dict[Flip, tuple[str, str, str]] = {
    "right_wrong": ("right → wrong", "#D55E00", "triangle-down"),
    "wrong_right": ("wrong → right", "#0072B2", "triangle-up"),
    "right_right": ("right in both", "#009E73", "circle"),
    "wrong_wrong": ("wrong in both", "#6B6B6B", "circle-open"),
}


def question_dots(questions: pl.DataFrame, chosen: str | None) -> go.Figure:
    """The figure; `customdata` of each dot names its question. `chosen` has a ring.

    questions: as `analysis.pairs.Comparison` holds them. Of more than `MOST` those are drawn that
    changed most.
    """
    drawn = questions.sort(-pl.col("difference").abs(), "question").head(MOST)
    plot = go.Figure()
    plot.add_scatter(
        x=[0, 1],
        y=[0, 1],
        mode="lines",
        line={"color": MUTED, "width": 1, "dash": "dot"},
        hoverinfo="skip",
        showlegend=False,
    )
    for flip in FLIPS:
        part = drawn.filter(pl.col("flip") == flip)
        name, colour, symbol = _LOOKS[flip]
        plot.add_scatter(
            x=_moved(part, "accuracy_a"),
            y=_moved(part, "accuracy_b"),
            mode="markers",
            name=name,
            marker={"color": colour, "symbol": symbol, "size": 9, "opacity": 0.85},
            customdata=[{"question": question} for question in part["question"]],
            text=[_hover(row) for row in part.iter_rows(named=True)],
            hovertemplate="%{text}<extra></extra>",
        )
    ring = drawn.filter(pl.col("question").eq_missing(pl.lit(chosen)))
    plot.add_scatter(
        x=_moved(ring, "accuracy_a"),
        y=_moved(ring, "accuracy_b"),
        mode="markers",
        marker={"color": MUTED, "symbol": "circle-open", "size": 18, "line": {"width": 2}},
        hoverinfo="skip",
        showlegend=False,
    )
    return plot.update_layout(
        template=TEMPLATE,
        height=HEIGHT,
        margin={"l": 56, "r": 12, "t": 16, "b": 96},
        xaxis={"title": {"text": "accuracy of A"}, "range": [-0.05, 1.05]},
        yaxis={"title": {"text": "accuracy of B"}, "range": [-0.05, 1.05]},
    )


def _moved(part: pl.DataFrame, column: str) -> list[float]:
    """The values, each moved by an amount that only its question decides."""
    return [
        value + Random(f"{column} {question}").uniform(-JITTER, JITTER)
        for question, value in part.select("question", column).iter_rows()
    ]


def _hover(row: dict[str, object]) -> str:
    return (
        f"A {row['correct_a']} of {row['graded_a']}, B {row['correct_b']} of {row['graded_b']} "
        f"right<br>{escape(str(row['question']))}"
    )
