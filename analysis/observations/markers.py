"""Markers of right answers against entropy and validity (paper section 3.2, Table 12, claim C7)."""

from dataclasses import dataclass

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.arms import REFERENCE
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations import evidence
from analysis.observations.clustered import Cell
from analysis.observations.evidence import DIFFICULTIES, said, said_change
from analysis.observations.marks import points
from analysis.observations.observation import Observation
from analysis.separation import AT_K, judged, separation
from analysis.statistics import Bootstrap
from analysis.theme import BLUE, GREEN, ORANGE

COUNTS, ROWS = "marker_entropy", "entropy_validity_rows"
NAMES = ("code", "shortcut", "repetition")
LOOKS = dict(
    zip(
        NAMES,
        ((BLUE, "circle"), (ORANGE, "square"), (GREEN, "diamond")),
        strict=True,
    )
)
OF_DEFINITION = (
    " A shortcut shows no steps, so the exact check never finds it valid: this difference holds by "
    "definition."
)


@dataclass(frozen=True)
class _Effects:
    """Answers with the marker against those without, by marker and difficulty."""

    entropy: dict[Cell, Bootstrap]
    validity: dict[Cell, Bootstrap]


def _of_one_arm(frames: Frames) -> tuple[str, pl.DataFrame, pl.DataFrame] | None:
    """The arm that the paper looks at, its counts and its rows; None where no arm has any."""
    counts, rows = frames[COUNTS], frames[ROWS]
    arm = evidence.arm_of(counts["arm"], REFERENCE)
    if arm is None:
        return None
    return arm, counts.filter(pl.col("arm") == arm), rows.filter(pl.col("arm") == arm)


def _effects(counts: pl.DataFrame) -> _Effects:
    cell = ("marker", "difficulty")
    return _Effects(
        evidence.differences(counts, cell, "marked", "summed_entropy", "with_entropy"),
        evidence.differences(counts, cell, "marked", "valid", "checked"),
    )


def _separation(rows: pl.DataFrame, marker: str, difficulty: str | None = None) -> Bootstrap | None:
    """AUROC of entropy for the marker, inside one seed, k and window of steps."""
    if difficulty is not None:
        rows = rows.filter(pl.col("difficulty") == difficulty)
    return separation(rows, "mean_entropy", marker, AT_K)


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    found = _of_one_arm(frames)
    if found is None:
        return say_empty(start(facts, ""), "no right answer of a group with signal")
    arm, counts, rows = found
    effects = _effects(counts)
    if not (effects.entropy or effects.validity):
        return say_empty(start(facts, ""), _nothing(counts))
    plot = make_subplots(
        rows=1,
        cols=3,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        subplot_titles=(
            "entropy, with - without (nat)",
            "AUROC of entropy",
            "valid chains, with - without (points)",
        ),
    )
    for shift, marker in enumerate(NAMES):
        places = [(at + 0.2 * (1 - shift), each) for at, each in enumerate(DIFFICULTIES[::-1])]
        of = [
            evidence.right_fresh(arm, rows, each, markers=[marker]) for each in DIFFICULTIES[::-1]
        ]
        panels = (
            ([effects.entropy.get((marker, each)) for _, each in places], 1.0, evidence.UNBOUNDED),
            ([_separation(rows, marker, each) for _, each in places], 1.0, (0.0, 1.0)),
            ([effects.validity.get((marker, each)) for _, each in places], 100.0, (-100.0, 100.0)),
        )
        for column, (estimates, factor, clip) in enumerate(panels, 1):
            evidence.add_estimates(
                plot,
                marker,
                [(at, made) for (at, _), made in zip(places, estimates, strict=True)],
                *LOOKS[marker],
                col=column,
                horizontal=True,
                factor=factor,
                clip=clip,
                behind=of,
            )
    for column, at in enumerate((0.0, 0.5, 0.0), 1):
        evidence.add_reference(plot, at, 1, column, horizontal=True)
    plot.update_xaxes(range=[-0.03, 1.03], col=2)
    plot.update_yaxes(range=[-0.5, 2.5])
    plot.update_yaxes(tickvals=[0, 1, 2], ticktext=list(DIFFICULTIES[::-1]), col=1)
    return evidence.subtitle(plot, facts, f"{arm}; {evidence.bar_meaning(counts)}")


def _nothing(counts: pl.DataFrame) -> str:
    known = counts["marker"].unique().sort().to_list()
    if not counts["marked"].any():
        return f"no right answer has a marker ({', '.join(known)})"
    return "no question has right answers with a marker and others without"


def lines(frames: Frames) -> list[str]:
    found = _of_one_arm(frames)
    if found is None:
        return ["Not here: a right answer of a group with signal."]
    arm, counts, rows = found
    effects = _effects(counts)
    return [
        *(f"{arm}, {_of_marker(marker, counts, rows, effects)}" for marker in NAMES),
        evidence.how_sure(counts),
    ]


def _of_marker(marker: str, counts: pl.DataFrame, rows: pl.DataFrame, effects: _Effects) -> str:
    counts = counts.filter(pl.col("marker") == marker)
    if counts.is_empty():
        return f"{marker}: not here, for it is not known which answers have it."
    right, have = (int(part["right_fresh"].sum()) for part in (counts, counts.filter("marked")))
    if have in (0, right):
        return (
            f"{marker}: not here, for {'none' if have == 0 else 'each'} of {right} answers has it."
        )
    return (
        f"{marker}: {have} of {right} right answers have it. "
        + _entropy(marker, counts, rows, effects)
        + _validity(marker, counts, rows, effects)
    )


def _entropy(marker: str, counts: pl.DataFrame, rows: pl.DataFrame, effects: _Effects) -> str:
    if not effects.entropy:
        return "Not here: their entropy."
    by_difficulty = "; ".join(
        f"{each} {_pair(counts, each, 'summed_entropy', 'with_entropy', 1, 3)}, difference "
        f"{said_change(effects.entropy.get((marker, each)))}"
        for each in DIFFICULTIES
    )
    return (
        f"Mean entropy with / without it in nat/token: {by_difficulty}. AUROC of entropy for it, "
        f"inside one seed, k and window of steps: {said(_separation(rows, marker))}."
    )


def _validity(marker: str, counts: pl.DataFrame, rows: pl.DataFrame, effects: _Effects) -> str:
    if counts["checked"].sum() == 0:
        return " Not here: whether their chains are valid."
    by_difficulty = "; ".join(
        f"{each} {_pair(counts, each, 'valid', 'checked', 100, 1)}"
        + (f", {points(made)}" if (made := effects.validity.get((marker, each))) else "")
        for each in DIFFICULTIES
    )
    by = f", {checked}," if (checked := judged(rows)) else ""
    return f" Valid chains{by} with / without it, in %: {by_difficulty}." + (
        OF_DEFINITION if marker == "shortcut" else ""
    )


def _pair(
    counts: pl.DataFrame, difficulty: str, top: str, bottom: str, factor: int, places: int
) -> str:
    """The ratio of sums with and without the marker, over all seeds and steps."""
    shown = []
    for side in (pl.col("marked"), ~pl.col("marked")):
        part = counts.filter((pl.col("difficulty") == difficulty) & side)
        over, whole = float(part[top].sum()), int(part[bottom].sum())
        shown.append(f"{factor * over / whole:.{places}f}" if whole else "none")
    return " / ".join(shown)


MARKERS = Observation(
    name="markers",
    title="Do right answers with a marker have higher entropy and worse chains?",
    reading="The paper finds code in right answers at higher entropy and with fewer valid chains: "
    "dots right of the line in the first two panels and left of it in the third. It is a "
    "correlation. Means and shares pool all steps, so they may only follow training time; "
    "the AUROC compares inside one k and window of steps.",
    queries=(COUNTS, ROWS),
    draw=draw,
    lines=lines,
)
