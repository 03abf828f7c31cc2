"""Masked GRPO: which difficulty teaches most? (paper section 3.2, Table 9)"""

from collections.abc import Iterator
from html import escape

import plotly.graph_objects as go
import polars as pl
from plotly.subplots import make_subplots

from analysis.comparison import (
    CURVE_REPLICATES,
    LEVEL,
    benchmarks_by_domain,
    mean_of,
    paired,
)
from analysis.drawing import Frames, StudyFacts, say_empty, start
from analysis.observations.clustered import drawn_over
from analysis.observations.marks import CHANGE, SHARE, add_bars, estimated, points
from analysis.observations.observation import Observation
from analysis.shown_tests import ShownTest, shown_tests
from analysis.statistics import REPLICATES, Bootstrap
from analysis.theme import MUTED, Look, look

ARMS = tuple(f"masked_{name}" for name in ("full", "easy", "medium", "hard"))
MATCHED = tuple(f"{arm}_matched" for arm in ARMS)
PAIRS = (("medium", "easy"), ("medium", "hard"), ("medium", "full"))
PAIRS_TO_FULL = (("easy", "full"), ("hard", "full"))


def _arms(accuracy: pl.DataFrame) -> list[str]:
    found = set(accuracy["arm"])
    return [arm for arm in ARMS + MATCHED if arm in found]


def _differences(
    accuracy: pl.DataFrame,
    test: ShownTest,
    arms: tuple[str, ...],
    pairs: tuple[tuple[str, str], ...] = PAIRS,
    replicates: int = REPLICATES,
) -> Iterator[tuple[str, Bootstrap]]:
    """`medium - easy` and so on, paired by seed and question, where both arms are there."""
    ending = "_matched" if arms == MATCHED else ""
    for one, other in pairs:
        tables = (test.table(accuracy, f"masked_{name}{ending}") for name in (one, other))
        if made := mean_of(paired(*tables), replicates, test.benchmarks):
            yield f"{one} − {other}", made


def _two(pair: str, arms: tuple[str, ...]) -> list[str]:
    """The two arms of a pair as `_differences` names it."""
    ending = "_matched" if arms == MATCHED else ""
    return [f"masked_{name}{ending}" for name in pair.split(" − ")]


def _updates(updates: pl.DataFrame) -> dict[str, tuple[float | None, float | None]]:
    """Groups that an arm learned from a step, and its gradient norm: means over its runs."""
    means = updates.group_by("arm").agg(pl.col("updated_groups", "grad_norm").mean())
    return {arm: (groups, norm) for arm, groups, norm in means.iter_rows()}


def _label(arm: str, updates: dict[str, tuple[float | None, float | None]]) -> str:
    groups = updates.get(arm, (None, None))[0]
    arm = escape(arm)
    return arm if groups is None else f"{arm}<br>{groups:.1f} groups a step"


def draw(facts: StudyFacts, frames: Frames) -> go.Figure:
    """Accuracy of every masked arm by test set, and below the paired differences."""
    accuracy = frames["arm_accuracy"]
    arms = _arms(accuracy)
    meaning = f"bar: {facts.interval_over(LEVEL)}; below: paired, not adjusted"
    if not arms:
        return say_empty(start(facts, meaning), "no masked arm was trained and tested")
    rows = accuracy.filter(pl.col("arm").is_in(arms))
    tests = shown_tests(benchmarks_by_domain(rows))
    updates = _updates(frames["run_updates"])
    plot = make_subplots(
        2,
        len(tests),
        shared_yaxes=True,
        vertical_spacing=0.14,
        horizontal_spacing=0.04,
        subplot_titles=[test.title for test in tests],
    )
    for column, test in enumerate(tests, 1):
        for arm in arms:
            if made := mean_of(test.table(rows, arm), CURVE_REPLICATES, test.benchmarks):
                rows_of = [test.behind(arm)]
                bars = estimated([(_label(arm, updates), made)], SHARE, rows_of)
                add_bars(plot, arm, bars, look(arm), 1, column, horizontal=True)
        for group, ending, style in (
            (ARMS, "", Look(MUTED, "circle", "solid")),
            (MATCHED, ", matched", Look(MUTED, "diamond", "solid")),
        ):
            pairs = PAIRS + PAIRS_TO_FULL
            found = list(_differences(rows, test, group, pairs, CURVE_REPLICATES))
            rows_of = [test.behind(*_two(name, group)) for name, _ in found]
            bars = estimated([(f"{name}{ending}", made) for name, made in found], CHANGE, rows_of)
            add_bars(plot, f"paired{ending}", bars, style, 2, column, horizontal=True, form="+.3f")
        plot.add_vline(0, line_color=MUTED, line_width=1, row=2, col=column)
    plot.update_xaxes(title_text="accuracy of the tested model", tickformat=".0%", row=1)
    plot.update_xaxes(title_text="paired difference", tickformat="+.0%", row=2)
    plot.update_yaxes(type="category", autorange="reversed")
    plot.update_layout(
        title_subtitle_text=facts.subtitle(meaning),
        showlegend=False,
        margin_t=120,
        height=330 + 60 * len(arms) + 20 * len(PAIRS + PAIRS_TO_FULL),
    )
    return plot


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
        for test in shown_tests(benchmarks_by_domain(rows)):
            made = dict(_differences(rows, test, group))
            if made:
                text = "; ".join(f"{pair} {points(each)}" for pair, each in made.items())
                first = next(iter(made.values()))
                over = drawn_over(first.seeds, first.questions)
                said.append(f"{name} {test.phrase}: {text} ({over}).")
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
