"""Are questions forgotten once they have retired, or were solved? (ours; paper Table 7 asks it)"""

from collections.abc import Mapping

import plotly.graph_objects as go
import polars as pl

from analysis.arms import REFERENCE
from analysis.behind import rollouts
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations.clustered import (
    Cell,
    clustered_ratios,
    drawn_over,
    first_arms,
    further,
    paired_difference,
)
from analysis.observations.marks import SHARE, add_bars, arm_panels, estimated, percent, points
from analysis.observations.observation import Observation
from analysis.statistics import Bootstrap
from analysis.theme import FLAWED, VALID, Look

COLUMNS = 3
KINDS = (
    (True, "retired", Look(VALID, "circle", "solid")),
    (False, "not retired, asked at the same time", Look(FLAWED, "diamond", "dash")),
)
NOBODY = "no retired question was asked again while others were"


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Share right by steps since retirement, beside questions that have not retired."""
    rows = frames["retired_later"]
    meaning = f"bar: {facts.interval_over(0.95)}"
    made = clustered_ratios(rows, ("arm", "since", "retired"), "share", "weight")
    arms = first_arms([cell[0] for cell in made])
    if not arms:
        return say_empty(start(facts, meaning), NOBODY)
    columns = min(COLUMNS, len(arms))
    height = -(-len(arms) // columns)
    plot = arm_panels(arms, COLUMNS)
    for place, arm in enumerate(arms):
        row, column = place // columns + 1, place % columns + 1
        for retired, name, look in KINDS:
            found = sorted(
                (since, each)
                for (of, since, kind), each in made.items()
                if of == arm and kind is retired
            )
            of = [rollouts(arm, replayed=False, step_min=since + 1) for since, _ in found]
            bars = estimated(found, SHARE, of)
            add_bars(plot, name, bars, look, row, column, lines=True, form=".1%")
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
        return [f"Not here: {NOBODY}, so forgetting after retirement cannot be seen."]
    said = []
    for arm in arms:
        own = right[arm, True]
        mine = rows.filter((pl.col("arm") == arm) & pl.col("retired"))
        text = (
            f"{arm}: fresh visits of retired questions were right in {percent(own)}"
            f"{_beside(rows, right, arm)}; at most half right at "
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
    """The share of visits with at most half right, soon and long after retirement."""
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
    """Questions solved once, all right, and the later visits at which nothing was right.

    Arms differ in how often they ask such a question again: only the rate a visit compares them.
    """
    counted = solved.filter(pl.col("later") > 0).with_columns(
        one=1.0,
        ever=(pl.col("later_failed") > 0).cast(pl.Float64),
        at_last=(pl.col("last_share") == 0).cast(pl.Float64),
    )
    a_visit = clustered_ratios(counted, ("arm",), "later_failed", "later")
    ever = clustered_ratios(counted, ("arm",), "ever", "one")
    at_last = clustered_ratios(counted, ("arm",), "at_last", "one")
    if not a_visit:
        return ["Not here: no question was solved and then asked again."]
    said = []
    for arm in first_arms([arm for (arm,) in a_visit]):
        mine = counted.filter(pl.col("arm") == arm)
        own = a_visit[arm,]
        gap = paired_difference(counted, "arm", arm, REFERENCE, "later_failed", "later")
        against = "" if gap is None else f", against {REFERENCE} {points(gap)}"
        said.append(
            f"{arm}: of the {mine['later'].sum():,} visits after a question had been solved once, "
            f"{percent(own)} had nothing right{against} "
            f"({drawn_over(own.seeds, own.questions)}). Of these questions, asked again "
            f"{mine['later'].to_numpy().mean():.1f} times on average, {percent(ever[arm,])} had "
            f"such a visit, {percent(at_last[arm,])} as their last; neither compares arms."
        )
    return said


FORGETTING = Observation(
    name="forgetting",
    title="Are questions forgotten once they have retired?",
    reading=(
        "A question retires after one visit with all answers right, so a lucky one comes back "
        "below 100 % with nothing forgotten; what is forgotten shows as a line that falls. The "
        "points of a line are not the same questions: only early retired ones are seen long "
        "after. Those that have not retired are harder, so the gap alone says little. Visits in a "
        "window without the other kind are left out. Arms whose retired questions leave the stream "
        "never see them again."
    ),
    queries=("retired_later", "solved_questions"),
    draw=draw,
    lines=lines,
)
