"""The figures of a study, in the order of the report: title, how to read it, how it is drawn.

Each is a pure function from the answers of the named queries to Plotly. Every subtitle says in
which world the study was run, with which seeds, and what band or bar means.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from analysis import figures_accuracy as accuracy
from analysis import figures_training as training
from analysis.closing import UNADJUSTED
from analysis.drawing import Frames, StudyFacts
from analysis.observations.registry import OBSERVATIONS
from analysis.theme import HEIGHT, TEMPLATE, WIDTH


@dataclass(frozen=True)
class Figure:
    """One entry of the report: file name, figure, and one line on how to read it."""

    name: str
    reading: str
    plot: go.Figure


def all_figures(facts: StudyFacts, frames: Frames, comparison: dict[str, Any]) -> list[Figure]:
    """Every figure, in the order of the report. One without rows says so."""
    of_study = [
        Figure(name, reading, finished(draw(facts, frames, comparison), title))
        for name, (title, reading, draw) in FIGURES.items()
    ]
    observed = [
        Figure(each.name, each.reading, finished(each.draw(facts, frames), each.title))
        for each in OBSERVATIONS
    ]
    return of_study + observed


def finished(plot: go.Figure, title: str) -> go.Figure:
    """The figure with its title and the look that all have."""
    plot.update_layout(
        template=TEMPLATE, width=WIDTH, height=plot.layout.height or HEIGHT, title_text=title
    )
    plot.update_annotations(font_size=13)
    return plot


Draw = Callable[[StudyFacts, Frames, dict[str, Any]], go.Figure]
FIGURES: dict[str, tuple[str, str, Draw]] = {
    "final_accuracy": (
        "How often is the trained model right?",
        "A dot is an arm's mean; two arms whose bars overlap may still differ, because the next "
        "figure pairs them question by question.",
        accuracy.final_accuracy,
    ),
    "difference_to_on_policy": (
        "What does each arm add to on-policy training?",
        "A bar wholly right of the line suggests better than on-policy, one that crosses it leaves "
        f"it open. {UNADJUSTED}",
        accuracy.difference_to_reference,
    ),
    "learning_curve": (
        "How does accuracy grow with training steps?",
        "Bands are each arm's own: two that overlap may still differ, as the arms share questions "
        "and seeds; the difference figure pairs them, at the last step.",
        accuracy.learning_curve,
    ),
    "learning_curve_tokens": (
        "How does accuracy grow with sampled tokens?",
        "At equal height the line further left sampled fewer tokens: a replayed answer is not "
        "sampled again.",
        accuracy.learning_curve_tokens,
    ),
    "accuracy_by_level": (
        "Where is accuracy gained?",
        "By the level that a question was given beforehand. Right of the dotted line `training "
        "ends` all questions are of higher levels than any that was trained on.",
        accuracy.accuracy_by_level,
    ),
    "signal_share": (
        "How much of a batch can teach?",
        "A group whose answers are all right or all wrong has no gradient; higher is more to "
        "learn from.",
        training.signal_share,
    ),
}

READINGS = {name: reading for name, (_, reading, _) in FIGURES.items()} | {
    each.name: each.reading for each in OBSERVATIONS
}
