"""Entropy of right answers by the difficulty of their question (paper figure 1c, claim C6)."""

from html import escape

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE
from analysis.behind import UNSEEN
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations import evidence
from analysis.observations.clustered import first_arms
from analysis.observations.evidence import DIFFICULTIES, said
from analysis.observations.observation import Observation
from analysis.separation import AT_A_TIME, separation
from analysis.statistics import Bootstrap
from analysis.theme import BLUE, GREEN, INK, ORANGE, PINK, faded

QUANTILES, ROWS = "entropy_by_difficulty", "entropy_validity_rows"
COLOURS = dict(zip(DIFFICULTIES, (ORANGE, BLUE, GREEN), strict=True))
BOX = 0.7 / len(DIFFICULTIES)  # of the room of an arm
AT_A_LEVEL = (*AT_A_TIME, "level")
NOTHING = "no right answer of a group with signal has an entropy"


def _of_one_arm(frames: Frames) -> pl.DataFrame:
    """The rows of the arm that the paper looks at; empty where no arm has any."""
    rows = frames[ROWS].drop_nulls("difficulty")
    arm = evidence.arm_of(rows["arm"], REFERENCE)
    return rows.clear() if arm is None else rows.filter(pl.col("arm") == arm)


def _medium_below(rows: pl.DataFrame, other: str, within: tuple[str, ...]) -> Bootstrap | None:
    """P(an answer to a medium question has lower entropy than one to the other kind)."""
    two = rows.filter(pl.col("difficulty").is_in(["medium", other]))
    return separation(
        two.with_columns(other=pl.col("difficulty") == other), "mean_entropy", "other", within
    )


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    quantiles, rows = frames[QUANTILES], _of_one_arm(frames)
    if quantiles.is_empty():
        return say_empty(start(facts, ""), NOTHING)
    plot = make_subplots(
        rows=1,
        cols=2,
        column_widths=[0.62, 0.38],
        horizontal_spacing=0.1,
        subplot_titles=("entropy of right answers", "P(medium has the lower entropy)"),
    )
    arms = first_arms(quantiles["arm"].to_list())
    for place, difficulty in enumerate(DIFFICULTIES):
        _add_boxes(plot, difficulty, (place - 1) * BOX, arms, frames)
    plot.update_xaxes(
        tickvals=list(range(len(arms))),
        ticktext=[escape(arm) for arm in arms],
        range=[-0.5, len(arms) - 0.5],
        col=1,
    )
    if rows.height:
        for shift, (name, within, colour, symbol) in enumerate(
            (
                ("at any level", AT_A_TIME, INK, "circle"),
                ("at equal level", AT_A_LEVEL, PINK, "diamond"),
            )
        ):
            made = [
                (place + 0.2 * (shift - 0.5), _medium_below(rows, other, within))
                for place, other in enumerate(("hard", "easy"))
            ]
            of = [evidence.right_fresh(rows["arm"][0], rows, other) for other in ("hard", "easy")]
            evidence.add_estimates(plot, name, made, colour, symbol, col=2, clip=(0, 1), behind=of)
        evidence.add_reference(plot, 0.5, 1, 2)
    plot.update_xaxes(
        tickvals=[0, 1], ticktext=["than hard", "than easy"], range=[-0.5, 1.5], col=2
    )
    plot.update_yaxes(title_text="mean token entropy (nat)", rangemode="tozero", col=1)
    compared = f"; right: {rows['arm'][0]}, {evidence.bar_meaning(rows)}" if rows.height else ""
    return evidence.subtitle(
        plot, facts, f"box: quartiles, dashed: mean, whiskers: 5 and 95 %, all steps{compared}"
    )


def _add_boxes(
    plot: go.Figure, difficulty: str, shift: float, arms: list[str], frames: Frames
) -> None:
    """A box an arm, and on its median a marker that shows nothing but can be clicked."""
    rows = frames[ROWS]
    table = (
        frames[QUANTILES]
        .filter((pl.col("difficulty") == difficulty) & pl.col("arm").is_in(arms))
        .sort(pl.col("arm").replace_strict(arms, range(len(arms)), return_dtype=pl.Int64))
    )
    places = [arms.index(arm) + shift for arm in table["arm"]]
    plot.add_box(
        x=places,
        width=0.7 * BOX,
        lowerfence=table["p05"].to_list(),
        q1=table["p25"].to_list(),
        median=table["p50"].to_list(),
        q3=table["p75"].to_list(),
        upperfence=table["p95"].to_list(),
        mean=table["mean_entropy"].to_list(),
        name=difficulty,
        line={"color": COLOURS[difficulty], "width": 1.8},
        fillcolor=faded(COLOURS[difficulty], 0.25),
        row=1,
        col=1,
    )
    plot.add_scatter(
        x=places,
        y=table["p50"].to_list(),
        mode="markers",
        marker=UNSEEN,
        showlegend=False,
        customdata=[
            evidence.right_fresh(arm, rows.filter(pl.col("arm") == arm), difficulty)
            for arm in table["arm"]
        ],
        hovertemplate="median %{y:.3f}<extra>" + difficulty + "</extra>",
        row=1,
        col=1,
    )


def lines(frames: Frames) -> list[str]:
    quantiles, rows = frames[QUANTILES], _of_one_arm(frames)
    if quantiles.is_empty() or rows.is_empty():
        return [f"Not here: {NOTHING}."]
    arm = rows["arm"][0]
    return [
        f"{arm}: median entropy of right answers in nat/token, and from 5 to 95 % of them: "
        f"{_medians(quantiles.filter(pl.col('arm') == arm))}.",
        *(_compared(rows, other) for other in ("easy", "hard")),
        evidence.how_sure(rows),
    ]


def _medians(quantiles: pl.DataFrame) -> str:
    known = {row["difficulty"]: row for row in quantiles.iter_rows(named=True)}
    return "; ".join(
        "{difficulty} {p50:.3f} ({p05:.3f} to {p95:.3f}; {right_fresh} answers to {questions} "
        "questions)".format(**known[each])
        if each in known
        else f"{each} none"
        for each in DIFFICULTIES
    )


def _compared(rows: pl.DataFrame, other: str) -> str:
    made = _medium_below(rows, other, AT_A_TIME)
    if made is None:
        return f"Not here: medium against {other} questions, for they share no window of steps."
    return (
        f"Against {other}: of two answers, to a medium and to the other kind of question, in the "
        f"same seed and window of steps, the medium one has the lower entropy with probability "
        f"{said(made)}; where their levels are equal, "
        f"{said(_medium_below(rows, other, AT_A_LEVEL))} (the paper: above 0.5)."
    )


ENTROPY_BY_DIFFICULTY = Observation(
    name="entropy_by_difficulty",
    title="Are right answers to medium questions the most certain?",
    reading="The paper has them at lower entropy than those to easy and to hard questions: both "
    "dots on the right above the line. Difficulty is how often the policy is right at the time, "
    "so it moves with training; dots compare inside windows of steps, boxes pool all steps. "
    "Solved questions are left out, as in the paper.",
    queries=(QUANTILES, ROWS),
    draw=draw,
    lines=lines,
)
