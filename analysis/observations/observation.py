"""What an observation is: named queries, a figure and the finding in sentences, on any lake."""

from collections.abc import Callable
from dataclasses import dataclass

import plotly.graph_objects as go

from analysis.drawing import Frames, StudyFacts


@dataclass(frozen=True)
class Observation:
    """One analysis of the paper, or of ours, as a reader meets it.

    name: also that of the figure's file. title: the question. reading: how to read the figure, and
    what it cannot say. queries: named queries, answered with their default parameters for one
    study or import; `draw` and `lines` take the answers by name. Neither raises where data are
    missing: the figure is empty and says why, the sentence begins with "Not here:".
    """

    name: str
    title: str
    reading: str
    queries: tuple[str, ...]
    draw: Callable[[StudyFacts, Frames], go.Figure]
    lines: Callable[[Frames], list[str]]
