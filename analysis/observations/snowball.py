"""Do flaws spread through replay: the parts of the snowball detector, drawn, and its verdict."""

from functools import partial
from typing import Any

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import arm_order
from analysis.behind import Behind, rollouts, window
from analysis.drawing import Frames, StudyFacts, add_arm, say_empty
from analysis.observations.clustered import first_arms
from analysis.observations.marks import CHANGE, add_bars, estimated
from analysis.observations.observation import Observation
from analysis.snowball import QUERIES, detect
from analysis.snowball.arms import curve
from analysis.snowball.cells import NotHereError
from analysis.snowball.replays import DELAYS, doses, gap
from analysis.snowball.verdict import studied
from analysis.theme import FLAWED, MUTED, VALID, Look

REPLICATES = 2_000  # of what is drawn, not printed
PANELS = ("Marked share over training", "After a first replay", "By dose, observed")


def _draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    fresh, visits = frames["snowball_fresh"], studied(frames["snowball_visits"])
    plot = make_subplots(1, 3, subplot_titles=PANELS, horizontal_spacing=0.08)
    meaning = (
        "left: mean over seeds, band: least to greatest; middle: marked less like unmarked first "
        "replays, 95 % interval, visit 0 is the placebo; right: of all studied arms"
    )
    plot.update_layout(title_subtitle_text=facts.subtitle(meaning), margin_t=120)
    for arm in first_arms(facts.arms):
        table = curve(fresh, arm)
        if table.height:
            lone = go.Figure()
            behind = partial(_right_fresh, arm)
            add_arm(lone, arm, table, "window_start", markers=False, behind=behind)
            plot.add_traces(lone.data, rows=1, cols=1)
    _add_events(plot, visits)
    _add_doses(plot, visits)
    plot.update_xaxes(title_text="training step", row=1, col=1)
    plot.update_xaxes(title_text="visits after the replay", dtick=1, row=1, col=2)
    plot.update_xaxes(title_text="marked replays of the question", dtick=1, row=1, col=3)
    plot.update_yaxes(tickformat=".0%", rangemode="tozero", row=1, col=1)
    plot.update_yaxes(tickformat="+.0%", row=1, col=2)
    plot.update_yaxes(tickformat=".0%", rangemode="tozero", row=1, col=3)
    return plot if plot.data else say_empty(plot, "no right answer whose marker is known")


def _right_fresh(arm: str, row: dict[str, Any]) -> Behind:
    steps = window(row["window_start"])
    return rollouts(arm, steps=steps, correct=True, replayed=False)


def _add_events(plot: go.Figure, visits: pl.DataFrame) -> None:
    made = {}
    for delay in DELAYS:
        try:
            made[delay] = gap(visits, delay, REPLICATES)
        except (NotHereError, ValueError):
            continue  # nobody was visited so long after a replay
    if not made:
        return
    of = [rollouts(*arm_order(visits["arm"].to_list()), replayed=True)]
    for delay, each in made.items():
        name, colour = ("placebo", MUTED) if delay == 0 else ("after a first replay", FLAWED)
        style = Look(colour, "circle", "solid")
        add_bars(plot, name, estimated([(delay, each)], CHANGE, of), style, col=2, form="+.3f")
    plot.add_hline(0, line_color=MUTED, line_width=1, row=1, col=2)


def _add_doses(plot: go.Figure, visits: pl.DataFrame) -> None:
    table = doses(visits)
    if table.is_empty():
        return
    arms = arm_order(visits["arm"].to_list())
    plot.add_scatter(
        x=table["dose"].to_list(),
        y=table["share"].to_list(),
        mode="lines+markers",
        line_color=VALID,
        hovertext=[f"{right} right answers" for right in table["right"]],
        hovertemplate="%{y:.1%} of %{hovertext}<extra></extra>",
        customdata=[rollouts(*arms, correct=True, replayed=False)] * table.height,
        showlegend=False,
        row=1,
        col=3,
    )


def _lines(frames: Frames) -> list[str]:
    snowball = detect(frames)
    first, *rest = snowball.lines
    if snowball.power is None:
        return [f"Not here: a verdict on a snowball. {snowball.reading}", *rest]
    return [f"{first} Power to find a strong one: at least {snowball.power:.0%}.", *rest]


SNOWBALL = Observation(
    "snowball",
    "Does replay of flawed chains spread flaws?",
    "A snowball needs a line of highest_entropy that leaves the others upwards (left) and answers "
    "that are flawed more often after a flawed replay, with nothing at visit 0 (middle). The right "
    "panel is no evidence: who is often flawed is replayed flawed.",
    QUERIES,
    _draw,
    _lines,
)
