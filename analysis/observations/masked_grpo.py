"""Masked GRPO: which difficulty teaches most? (paper section 3.2, Table 9)"""

from collections.abc import Iterator

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.comparison import CURVE_REPLICATES, LEVEL, Estimate, accuracy_table, estimate, paired
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.figures_accuracy import TEST_NAMES
from analysis.observations.clustered import drawn_over
from analysis.observations.observation import Observation
from analysis.theme import MUTED, look

ARMS = tuple(f"masked_{name}" for name in ("full", "easy", "medium", "hard"))
MATCHED = tuple(f"{arm}_matched" for arm in ARMS)
PAIRS = (("medium", "easy"), ("medium", "hard"), ("medium", "full"))
PAIRS_TO_FULL = (("easy", "full"), ("hard", "full"))


def _arms(accuracy: pl.DataFrame) -> list[str]:
    found = set(accuracy["arm"])
    return [arm for arm in ARMS + MATCHED if arm in found]


def _differences(
    accuracy: pl.DataFrame, benchmark: str, arms: tuple[str, ...]
) -> Iterator[tuple[str, Estimate]]:
    """`medium - easy` and so on, paired by seed and question, where both arms are there."""
    ending = "_matched" if arms == MATCHED else ""
    for one, other in PAIRS + PAIRS_TO_FULL:
        tables = (
            accuracy_table(accuracy, f"masked_{name}{ending}", benchmark) for name in (one, other)
        )
        if made := estimate(paired(*tables), least=-1.0, replicates=CURVE_REPLICATES):
            yield f"{one} − {other}", made


def _updates(updates: pl.DataFrame) -> dict[str, tuple[float | None, float | None]]:
    """Groups that an arm learned from a step, and its gradient norm: means over its runs."""
    means = updates.group_by("arm").agg(pl.col("updated_groups", "grad_norm").mean())
    return {arm: (groups, norm) for arm, groups, norm in means.iter_rows()}


def _label(arm: str, updates: dict[str, tuple[float | None, float | None]]) -> str:
    groups = updates.get(arm, (None, None))[0]
    return arm if groups is None else f"{arm}<br>{groups:.1f} groups a step"


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Accuracy of every masked arm by test set, and below the paired differences."""
    accuracy = frames["arm_accuracy"]
    arms = _arms(accuracy)
    meaning = f"bar: {facts.interval_over(LEVEL)}; below: paired, not adjusted"
    if not arms:
        return say_empty(start(facts, meaning), "no masked arm was trained and tested")
    rows = accuracy.filter(pl.col("arm").is_in(arms))
    benchmarks = rows["benchmark"].unique().sort().to_list()
    updates = _updates(frames["run_updates"])
    plot = make_subplots(
        2,
        len(benchmarks),
        shared_yaxes=True,
        vertical_spacing=0.14,
        horizontal_spacing=0.04,
        subplot_titles=[TEST_NAMES.get(name, name) for name in benchmarks],
    )
    for column, benchmark in enumerate(benchmarks, 1):
        for arm in arms:
            if made := estimate(accuracy_table(rows, arm, benchmark), replicates=CURVE_REPLICATES):
                style = look(arm)
                _add(plot, _label(arm, updates), made, style.colour, style.symbol, 1, column)
        for group, symbol in ((ARMS, "circle"), (MATCHED, "diamond")):
            for name, made in _differences(rows, benchmark, group):
                label = f"{name}, matched" if group == MATCHED else name
                _add(plot, label, made, MUTED, symbol, 2, column)
        plot.add_vline(0, line_color=MUTED, line_width=1, row=2, col=column)
    plot.update_xaxes(title_text="accuracy of the final model", tickformat=".0%", row=1)
    plot.update_xaxes(title_text="paired difference", tickformat="+.0%", row=2)
    plot.update_yaxes(type="category", autorange="reversed")
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning),
        showlegend=False,
        margin_t=120,
        height=330 + 60 * len(arms) + 20 * len(PAIRS + PAIRS_TO_FULL),
    )
    return plot


def _add(
    plot: go.Figure, label: str, made: Estimate, colour: str, symbol: str, row: int, column: int
) -> None:
    plot.add_scatter(
        x=[made.value],
        y=[label],
        mode="markers",
        marker={"symbol": symbol, "size": 10, "color": colour},
        error_x={
            "type": "data",
            "symmetric": False,
            "thickness": 2,
            "width": 5,
            "array": [made.high - made.value],
            "arrayminus": [made.value - made.low],
        },
        hovertemplate=f"%{{x:.3f}} [{made.low:.3f}, {made.high:.3f}]<extra>{label}</extra>",
        row=row,
        col=column,
    )


def lines(frames: Frames) -> list[str]:
    """The paired differences, and from how many groups each arm learned."""
    accuracy = frames["arm_accuracy"]
    arms = _arms(accuracy)
    if not arms:
        return ["Not here: no masked arm (masked_easy, masked_medium, ...) was trained and tested."]
    rows = accuracy.filter(pl.col("arm").is_in(arms))
    said = []
    for group, name in ((ARMS, "Masked GRPO"), (MATCHED, "Masked GRPO, matched groups")):
        if missing := [arm for arm in group if arm not in arms]:
            said.append(f"Not here: {', '.join(missing)}.")
        if len(missing) == len(group):
            continue
        for benchmark in rows["benchmark"].unique().sort():
            made = dict(_differences(rows, benchmark, group))
            shown = [f"{one} − {other}" for one, other in PAIRS if f"{one} − {other}" in made]
            if shown:
                text = "; ".join(f"{pair} {_points(made[pair])}" for pair in shown)
                over = drawn_over(made[shown[0]].seeds, made[shown[0]].questions)
                said.append(f"{name} on {benchmark}: {text} ({over}).")
        said += _learned_from(frames["run_updates"], group, name)
    return said


def _learned_from(updates: pl.DataFrame, arms: tuple[str, ...], name: str) -> list[str]:
    found = _updates(updates)
    parts = [
        f"{arm.removeprefix('masked_').removesuffix('_matched')} {found[arm][0]:.1f}"
        + ("" if found[arm][1] is None else f" (gradient norm {found[arm][1]:.3f})")
        for arm in arms
        if found.get(arm, (None, None))[0] is not None
    ]
    if not parts:
        return [f"Not here: {name.lower()} logged no groups that it learned from."]
    return [f"{name}, groups learned from a step: {', '.join(parts)}."]


def _points(made: Estimate) -> str:
    return f"{100 * made.value:+.1f} points [{100 * made.low:+.1f}, {100 * made.high:+.1f}]"


MASKED_GRPO = Observation(
    name="masked_grpo",
    title="Which difficulty teaches most, if only one is learned from?",
    reading=(
        "Each arm learns from groups of one difficulty only; full learns from all. Arms whose "
        "groups are not matched differ in how many they learn from, which stands beside their "
        "name: only the matched ones compare difficulty alone, and they sample more to get there."
    ),
    queries=("arm_accuracy", "run_updates"),
    draw=draw,
    lines=lines,
)
