"""How much does a question gain until its next visit, and where does the signal lie, by bucket?"""

from collections.abc import Mapping

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.behind import Behind, rollouts
from analysis.difficulty import DIFFICULTIES, difficulty
from analysis.drawing import Frames, StudyFacts, by_seed, say_empty, start
from analysis.observations.clustered import (
    clustered_ratios,
    drawn_over,
    first_arms,
    further,
    paired_difference,
)
from analysis.observations.marks import CHANGE, Bar, add_bars, estimated, points
from analysis.observations.observation import Observation
from analysis.statistics import Bootstrap
from analysis.theme import MUTED, look

QUERY = "bucket_gain_questions"
KINDS = ((False, "fresh visits"), (True, "visits drawn from the replay buffer"))


def _parts(rows: pl.DataFrame, column: str, *by: str) -> pl.DataFrame:
    """The part of a run's total of `column` that fell to each group of `by`: arm, seed, *by."""
    total = pl.col(column).sum().over("arm", "seed")
    parts = (
        rows.group_by("arm", "seed", *by)
        .agg(pl.col(column).sum())
        .with_columns((pl.col(column) / total).alias("share"))
    )
    return parts.filter(pl.col("share").is_finite())


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Gain to the next visit and part of the signal, by bucket and kind of visit."""
    rows = frames[QUERY]
    meaning = f"bar: {facts.interval_over(0.95)}; below: mean and range over seeds"
    known = rows.filter(pl.col("bucket").is_not_null())
    gains = clustered_ratios(known, ("arm", "experiential", "bucket"), "change", "followed")
    if not gains:
        return say_empty(start(facts, meaning), "no question was visited three times")
    signal = _parts(rows, "advantage", "experiential", "bucket").drop_nulls("bucket")
    plot = make_subplots(
        2,
        2,
        shared_yaxes=True,
        shared_xaxes=True,
        horizontal_spacing=0.05,
        vertical_spacing=0.08,
        subplot_titles=[name for _, name in KINDS],
    )
    arms = first_arms(rows["arm"].to_list())
    for place, arm in enumerate(arms):
        shift = 0.5 * ((place + 0.5) / len(arms) - 0.5)  # so that bars do not hide each other
        for column, (experiential, _) in enumerate(KINDS, 1):
            found = sorted(
                (bucket, made)
                for (of, kind, bucket), made in gains.items()
                if (of, kind) == (arm, experiential)
            )
            bars = estimated(
                [(bucket + shift, made) for bucket, made in found],
                CHANGE,
                [_left_in(arm, bucket) for bucket, _ in found],
            )
            add_bars(plot, arm, bars, look(arm), 1, column, lines=True, form="+.3f")
            mine = signal.filter((pl.col("arm") == arm) & (pl.col("experiential") == experiential))
            ranges = by_seed(mine, "bucket", "share").iter_rows()
            bars = [
                Bar(bucket + shift, mean, low, high, behind=_left_in(arm, bucket))
                for bucket, mean, low, high in ranges
            ]
            add_bars(plot, arm, bars, look(arm), 2, column, lines=True)
    plot.add_hline(0, line_color=MUTED, line_width=1, row=1)
    plot.update_xaxes(dtick=1)
    plot.update_xaxes(title_text="bucket: right answers k before the visit", row=2)
    plot.update_yaxes(tickformat="+.0%", row=1)
    plot.update_yaxes(tickformat=".0%", rangemode="tozero", row=2)
    plot.update_yaxes(title_text="change of the share right,<br>to the next visit", row=1, col=1)
    plot.update_yaxes(title_text="share of the signal<br>(sum of |advantage|)", row=2, col=1)
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning), margin_t=120, height=680, legend_y=-0.14
    )
    return plot


def _left_in(arm: str, bucket: int) -> Behind:
    """The visits that left a question in a bucket, before those that a point is about."""
    return rollouts(arm, bucket=[bucket])


def lines(frames: Frames) -> list[str]:
    """Gain by difficulty, what luck adds to it, and where the signal lies, by arm."""
    rows = frames[QUERY].with_columns(difficulty=difficulty(pl.col("bucket"), pl.col("group_size")))
    known = rows.drop_nulls("difficulty")
    gains = clustered_ratios(known, ("arm", "experiential", "difficulty"), "change", "followed")
    if not gains:
        return ["Not here: no question was visited three times, so no gain can be told."]
    said = []
    for arm in first_arms(rows["arm"].to_list()):
        mine = known.filter(pl.col("arm") == arm)
        for experiential, kind in KINDS:
            made = {
                cell[2]: each for cell, each in gains.items() if cell[:2] == (arm, experiential)
            }
            if made:
                visits = mine.filter(pl.col("experiential") == experiential)
                said.append(_gains(f"{arm}, {kind}", made, visits))
        said += [*_naive(arm, mine), _signal(arm, rows.filter(pl.col("arm") == arm))]
    return said + further(rows["arm"].to_list(), QUERY)


def _gains(who: str, made: Mapping[str, Bootstrap], visits: pl.DataFrame) -> str:
    """The gain of every difficulty, and how medium compares; visits: of one arm and kind."""
    most = max(made.values(), key=lambda each: (each.seeds, each.questions))
    parts = [f"{name} {points(made[name])}" for name in DIFFICULTIES if name in made]
    for other in ("hard", "easy"):
        gap = paired_difference(visits, "difficulty", "medium", other, "change", "followed")
        if gap is not None:
            parts.append(f"medium − {other} {points(gap)}")
    over = drawn_over(most.seeds, most.questions)
    steps = int(visits["gap"].sum()) / int(visits["followed"].sum())
    return f"{who}, gain to the next visit, {steps:.0f} steps later: {'; '.join(parts)} ({over})."


def _naive(arm: str, visits: pl.DataFrame) -> list[str]:
    """What fresh visits seem to gain counted from the visit that set the bucket: seeds' mean."""
    changes = (
        visits.filter(~pl.col("experiential"))
        .group_by("seed", "difficulty")
        .agg(change=pl.col("naive_change").sum() / pl.col("before").sum())
        .filter(pl.col("change").is_finite())
        .group_by("difficulty")
        .agg(pl.col("change").mean())
    )
    found = dict(changes.iter_rows())
    parts = [f"{name} {100 * found[name]:+.1f}" for name in DIFFICULTIES if name in found]
    if not parts:
        return []
    return [
        f"{arm}, fresh visits counted from the visit that set the bucket would seem to gain "
        f"{', '.join(parts)} points, regression to the mean included."
    ]


def _signal(arm: str, rows: pl.DataFrame) -> str:
    """Which part of the signal and of the visits each difficulty had, both kinds together."""
    rows = rows.with_columns(pl.col("difficulty").fill_null("first visits"))
    signal, visits = (
        dict(
            found.group_by("difficulty")
            .agg(pl.col("share").sum() / found["seed"].n_unique())
            .iter_rows()
        )
        for found in (_parts(rows, column, "difficulty") for column in ("advantage", "visits"))
    )
    if not signal:
        return f"Not here: {arm} logged no advantages, so its signal cannot be placed."
    parts = [
        f"{name} {signal.get(name, 0):.0%} in {visits[name]:.0%} of the visits"
        for name in ("first visits", *DIFFICULTIES)
        if name in visits
    ]
    return f"{arm}, signal (sum of |advantage|) by difficulty before the visit: {', '.join(parts)}."


GAIN_BY_BUCKET = Observation(
    name="gain_by_bucket",
    title="What does a visit teach, by the difficulty before it?",
    reading=(
        "The bucket was set by the visit before; the change runs from this visit to the next, so "
        "that luck in what set the bucket cannot pass for a gain or a loss. It is observed, not "
        "assigned: questions of a bucket differ in more than their visit, other visits teach in "
        "between, and a question that is retired out of the stream has no next visit, which "
        "favours the highest buckets. A point without a bar rests on one question."
    ),
    queries=(QUERY,),
    draw=draw,
    lines=lines,
)
