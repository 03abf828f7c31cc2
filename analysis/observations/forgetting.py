"""Are questions forgotten once they have retired, or were solved? (ours; paper Table 7 asks it)"""

from collections.abc import Mapping

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations.clustered import (
    Cell,
    clustered_ratios,
    drawn_over,
    first_arms,
    further,
    paired_difference,
    percent,
    points,
)
from analysis.observations.observation import Observation
from analysis.statistics import Bootstrap
from analysis.theme import FLAWED, VALID

COLUMNS = 3
KINDS = (
    (True, "retired", VALID, "circle", "solid"),
    (False, "not retired, asked at the same time", FLAWED, "diamond", "dash"),
)


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Share right by steps since retirement, beside questions that have not retired."""
    rows = frames["retired_later"]
    meaning = f"bar: {facts.interval_over(0.95)}"
    made = clustered_ratios(rows, ("arm", "since", "retired"), "share", "weight")
    arms = first_arms([cell[0] for cell in made])
    if not arms:
        return say_empty(start(facts, meaning), "no retired question was asked again")
    columns = min(COLUMNS, len(arms))
    height = -(-len(arms) // columns)
    plot = make_subplots(
        height,
        columns,
        shared_yaxes=True,
        shared_xaxes=True,
        subplot_titles=arms,
        horizontal_spacing=0.03,
        vertical_spacing=0.25 / (height + 1),
    )
    for place, arm in enumerate(arms):
        for retired, name, colour, symbol, dash in KINDS:
            found = {
                cell[1]: each
                for cell, each in made.items()
                if cell[0] == arm and cell[2] is retired
            }
            if found:
                look = {"name": name, "colour": colour, "symbol": symbol, "dash": dash}
                _add(plot, found, look, place, columns)
    plot.update_xaxes(title_text="steps since retirement (start of the span)", row=height)
    plot.update_yaxes(tickformat=".0%", range=[0, 1.02])
    plot.update_yaxes(title_text="share right", col=1)
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning),
        margin_t=120,
        height=250 + 190 * height,
        legend_y=-0.32 / height,
    )
    return plot


def _add(
    plot: go.Figure, found: Mapping[int, Bootstrap], look: dict[str, str], place: int, columns: int
) -> None:
    """A line with its bars: the ratios by steps since retirement, in the panel `place`."""
    at = {"row": place // columns + 1, "col": place % columns + 1}
    spans = sorted(found)
    made = [found[since] for since in spans]
    bounds = [each.interval() for each in made]
    plot.add_scatter(
        x=spans,
        y=[each.value for each in made],
        name=look["name"],
        legendgroup=look["name"],
        showlegend=place == 0,
        mode="lines+markers",
        line={"color": look["colour"], "dash": look["dash"], "width": 2},
        marker={"symbol": look["symbol"], "size": 7},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [high - each.value for each, (_, high) in zip(made, bounds, strict=True)],
            "arrayminus": [each.value - low for each, (low, _) in zip(made, bounds, strict=True)],
            "thickness": 1.5,
            "width": 3,
        },
        customdata=[(*bound, each.questions) for each, bound in zip(made, bounds, strict=True)],
        hovertemplate="%{y:.1%} [%{customdata[0]:.1%}, %{customdata[1]:.1%}]<br>"
        "%{customdata[2]} questions<extra>" + look["name"] + "</extra>",
        **at,
    )


def lines(frames: Frames) -> list[str]:
    """How often retired questions are forgotten, and solved ones lost, by arm."""
    rows, solved = frames["retired_later"], frames["solved_questions"]
    said = [*_retired(rows), *_lost(solved)]
    arms = [*rows["arm"].to_list(), *solved["arm"].to_list()]
    return said + further(arms, "retired_later")


def _retired(rows: pl.DataFrame) -> list[str]:
    right = clustered_ratios(rows, ("arm", "retired"), "share", "weight")
    lost = clustered_ratios(rows, ("arm", "retired"), "lost", "weight")
    spans = clustered_ratios(rows, ("arm", "retired", "since"), "lost", "weight")
    arms = first_arms([arm for arm, retired in right if retired])
    if not arms:
        return [
            "Not here: no retired question was asked again, so forgetting after retirement "
            "cannot be seen."
        ]
    said = []
    for arm in arms:
        own = right[arm, True]
        mine = rows.filter((pl.col("arm") == arm) & pl.col("retired"))
        text = (
            f"{arm}: fresh visits of retired questions were right in {percent(own)}"
            f"{_beside(rows, right, arm)}; forgotten, with at most half right, at "
            f"{percent(lost[arm, True])} of these {mine['visits'].sum():,} visits "
            f"({drawn_over(own.seeds, own.questions)})"
        )
        said.append(f"{text}.{_over_time(spans, arm)}")
    return said


def _beside(rows: pl.DataFrame, right: Mapping[Cell, Bootstrap], arm: str) -> str:
    """The same share of those that had not retired, and the difference."""
    mine = rows.filter(pl.col("arm") == arm)
    gap = paired_difference(mine, "retired", True, False, "share", "weight")
    if gap is None or (arm, False) not in right:
        return ""
    other = percent(right[arm, False])
    return f", those of others at the same time in {other}, a difference of {points(gap)}"


def _over_time(spans: Mapping[Cell, Bootstrap], arm: str) -> str:
    """The forgotten share soon and long after retirement."""
    found = {
        since: made for (name, retired, since), made in spans.items() if name == arm and retired
    }
    if len(found) < 2:
        return ""
    first, last = min(found), max(found)
    return (
        f" By steps since retirement: {percent(found[first])} from {first} on, "
        f"{percent(found[last])} from {last} on."
    )


def _lost(solved: pl.DataFrame) -> list[str]:
    """Questions solved once, all right, of which a later visit had nothing right."""
    counted = solved.filter(pl.col("later") > 0).with_columns(
        one=1.0,
        lost=(pl.col("least_share") == 0).cast(pl.Float64),
        lost_at_last=(pl.col("last_share") == 0).cast(pl.Float64),
    )
    ever = clustered_ratios(counted, ("arm",), "lost", "one")
    at_last = clustered_ratios(counted, ("arm",), "lost_at_last", "one")
    if not ever:
        return ["Not here: no question was solved and then asked again."]
    said = []
    for arm in first_arms([arm for (arm,) in ever]):
        text = (
            f"{arm}: of the questions solved once and asked again "
            f"({_times(counted, arm):.1f} times), {percent(ever[arm,])} had a later visit with "
            f"nothing right, {percent(at_last[arm,])} their last one "
            f"({drawn_over(ever[arm,].seeds, ever[arm,].questions)})"
        )
        gap = paired_difference(counted, "arm", arm, REFERENCE, "lost", "one")
        more = "" if gap is None else f"; a later one against {REFERENCE}: {points(gap)}"
        said.append(f"{text}{more}.")
    return said


def _times(counted: pl.DataFrame, arm: str) -> float:
    return float(counted.filter(pl.col("arm") == arm)["later"].to_numpy().mean())


FORGETTING = Observation(
    name="forgetting",
    title="Are questions forgotten once they have retired?",
    reading=(
        "A question retires after one visit with all answers right, so a lucky one comes back "
        "below 100 % with nothing forgotten; what is forgotten shows as a line that falls. The "
        "points of a line are not the same questions: only early retired ones are seen long "
        "after. Those that have not retired are harder, so the gap alone says little. Arms whose "
        "retired questions leave the stream never see them again."
    ),
    queries=("retired_later", "solved_questions"),
    draw=draw,
    lines=lines,
)
