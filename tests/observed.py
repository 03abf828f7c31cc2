"""What an observation says and draws, for tests: its frames, its sentences, its numbers."""

import re

import duckdb
import plotly.graph_objects as go
import polars as pl

from analysis.drawing import StudyFacts
from analysis.observations.observation import Observation
from analysis.queries import answer

FACTS = StudyFacts("s", "a world", [0, 1, 2], ["on_policy"])
NUMBER = r"[+-]?\d+(?:\.\d+)?"

Frames = dict[str, pl.DataFrame]


def frames_of(
    observation: Observation, catalog: duckdb.DuckDBPyConnection, study: str = "s"
) -> Frames:
    return {name: answer(catalog, name, study=study) for name in observation.queries}


def say(observation: Observation, frames: Frames) -> str:
    """All its sentences, none of which may show a hole."""
    text = "\n".join(observation.lines(frames))
    assert text and not re.search(r"\b(nan|None|null)\b", text), text
    return text


def number(text: str, before: str) -> float:
    """The first number after these words."""
    found = re.search(re.escape(before) + rf"\D*?({NUMBER})", text)
    assert found, f"{before!r} is not in {text}"
    return float(found.group(1))


def interval(text: str, before: str) -> tuple[float, float]:
    found = re.search(re.escape(before) + rf".*?\[({NUMBER}), ({NUMBER})\]", text)
    assert found, f"{before!r} is not in {text}"
    return float(found.group(1)), float(found.group(2))


def traces(plot: go.Figure, name: str, axis: str) -> list[go.Scatter]:
    """The traces of this name in the panel with this x axis."""
    return [each for each in plot.data if each.name == name and (each.xaxis or "x") == axis]


def trace(plot: go.Figure, name: str, axis: str = "x") -> go.Scatter:
    (found,) = traces(plot, name, axis)
    return found


def says_empty(plot: go.Figure) -> bool:
    return any("Nothing to show" in note.text for note in plot.layout.annotations)
