"""The views of the screen of the experience buffer: each asks only for what it shows."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import streamlit as st

from analysis import buffer_figures as figures
from analysis.buffer_filling import event_rates, occupancy
from analysis.concentration import Counted, curves, mean_over_runs, over_time, replaying, reuse
from analysis.draw_rule import ArmDraws, arm_draws
from analysis.maps import step_window
from app import data
from app.components.figure import show_figure
from app.components.plain import plain

VIEWS = {
    "filling": "how full",
    "events": "events",
    "age": "age",
    "ratios": "ratios by age",
    "reuse": "reuse",
    "concentration": "concentration",
    "draws": "draws and the rule",
    "snapshot": "at one step",
}
MOST_POINTS = 25  # windows on a curve
SURE = 0.05
NO_USE = "These runs stored and drew nothing."
TIMES = {"draws": "times drawn", "replays": "times replayed"}


def two_a_row(parts: Sequence[Any], draw: Any) -> None:
    """`draw` each part, two side by side where there are several."""
    for left in range(0, len(parts), 2):
        row = parts[left : left + 2]
        places = st.columns(2, gap="medium") if len(parts) > 1 else [st.container()]
        for place, part in zip(places, row, strict=False):
            with place:
                draw(part)


def filling(study: str, runs: list[str], arms: Sequence[str], steps: int) -> None:
    """How full the buckets are."""
    window = step_window(steps, MOST_POINTS)
    rows = data.answer("bucket_occupancy", study=study, run=runs, every=window)
    st.caption(
        "Questions in each bucket, and the retired on top: means over the runs of an arm. A "
        "question lies in the bucket of its latest count of right answers, k; when all are right "
        "it retires. A point opens the trajectories whose group came to k right in these steps."
    )
    show_figure(occupancy(rows, arms), "buffer.occupancy", study=study)


def happening(study: str, runs: list[str], arms: Sequence[str], steps: int) -> None:
    """What comes in, moves, goes out and is used."""
    window = step_window(steps, MOST_POINTS)
    events = data.answer("buffer_events", study=study, run=runs, window=window)
    logged = data.answer("buffer_dynamics", study=study, run=runs)
    show_figure(event_rates(events, logged, arms, window), "buffer.events", study=study)


def aging(study: str, runs: list[str], arms: Sequence[str], ends: Mapping[str, int]) -> None:
    """Age of what is replayed. ends: the last step of each arm."""
    window = step_window(max(ends.values()), MOST_POINTS)
    ages = data.answer("buffer_ages", study=study, run=runs, window=window)
    if ages.is_empty():
        st.info("These runs replay no trajectory of their own, so that nothing has an age.")
        return
    without = [arm for arm in arms if arm not in set(ages["arm"])]
    if without:
        st.caption(f"Nothing of its own replays, so is not here: {plain(', '.join(without))}.")
    show_figure(figures.ages(ages, window, ends), "buffer.ages", study=study)
    st.caption("Line: median; band: 5 to 95 % of the replayed trajectories; means over runs.")


def weighing(study: str, runs: list[str], steps: int) -> None:
    """What importance ratios and weights are by age."""
    width = step_window(steps, MOST_POINTS // 2)
    weights = data.answer("buffer_age_weights", study=study, run=runs, width=width)
    if weights.is_empty():
        st.info("These runs replay no trajectory of their own, so that nothing has an age.")
        return
    left, right = st.columns(2, gap="medium")
    with left:
        show_figure(figures.ratios(weights, width), "buffer.ratios", study=study)
        st.caption(
            "Policy now over policy that sampled it, mean over the tokens of a trajectory. Line: "
            "median, band: 5 to 95 %. At 1 the policy has not moved."
        )
    with right:
        show_figure(figures.ratios(weights, width, "weight"), "buffer.weights", study=study)
        st.caption("What multiplies the advantage after clipping or shaping: mean by age.")


def reusing(study: str, runs: list[str], steps: int, counted: Counted) -> None:
    """How often the same question or trajectory comes."""
    uses = _uses(study, runs, steps)
    if uses.is_empty():
        st.info(NO_USE)
        return
    trajectories = data.answer("buffer_reuse", study=study, run=runs)
    left, right = st.columns(2, gap="medium")
    with left:
        st.text(f"Questions by their {counted}")
        show_figure(
            figures.reuse_counts(
                reuse(uses, counted), "questions", TIMES[counted], replaying(uses)
            ),
            f"buffer.questions.{counted}",
            study=study,
        )
    with right:
        st.text("Stored trajectories by their replays")
        counts = mean_over_runs(trajectories.rename({"trajectories": "count"}))
        show_figure(
            figures.reuse_counts(counts, "trajectories", TIMES["replays"], replaying(uses)),
            "buffer.trajectories",
            study=study,
        )
    st.caption(
        "A point opens all replayed trajectories of its arm, not only those used so often; the "
        "point at 0, or of an arm that replays none, all fresh ones."
    )


def concentrating(
    study: str, runs: list[str], ends: Mapping[str, int], counted: Counted, measure: str
) -> None:
    """How unevenly the questions are used. ends: the last step of each arm."""
    steps = max(ends.values())
    window = step_window(steps, MOST_POINTS)
    uses = _uses(study, runs, steps)
    if uses.is_empty():
        st.info(NO_USE)
        return
    left, right = st.columns(2, gap="medium")
    with left:
        st.text(f"{figures.MEASURES[measure]}, of all {counted} so far")
        show_figure(
            figures.concentration(over_time(uses, counted), measure, window, ends, replaying(uses)),
            f"buffer.concentration.{counted}.{measure}",
            study=study,
        )
        st.caption(
            "Over the questions that were ever stored. Gini: 0 all alike, 1 all on one question. "
            "The top 1 % or 10 %: at least one question. Line: mean over runs; band: least to "
            "greatest run. A point opens what was replayed in its steps, or fresh rows where the "
            "arm replays no trajectory."
        )
    with right:
        st.text(f"Lorenz curve of all {counted}")
        show_figure(
            figures.lorenz_curves(curves(uses, counted), replaying(uses)),
            f"buffer.lorenz.{counted}",
            study=study,
        )
        st.caption(
            "On the dotted line every question is used alike; mean over runs. A point opens all "
            "replayed trajectories of its arm (fresh ones where it replays none)."
        )


def _uses(study: str, runs: list[str], steps: int) -> pl.DataFrame:
    window = step_window(steps, MOST_POINTS)
    return data.answer("buffer_uses", study=study, run=runs, window=window)


def drawing(study: str, runs: list[str]) -> None:
    """Draws from each bucket against what the arm's own rule lets expect."""
    found: list[ArmDraws] = data.ask_catalog(arm_draws, study, tuple(runs))
    if not found:
        st.info("These runs draw no question from a buffer.")
        return
    st.caption(
        "The arm's rule is in its settings. Here it draws again, many times, from the bucket sizes "
        "that the log tells: a faithful run lies within the grey bar in 95 % of cases; a bucket "
        "that is always drawn empty leaves nothing to chance. A point opens the trajectories "
        "that were replayed with these draws, or the fresh ones where the arm replays none."
    )

    def drawn(arm: ArmDraws) -> None:
        st.text(arm.arm)
        if arm.runs == 0:
            st.info("By which rule these runs draw, or from how full buckets, is not known.")
            return
        show_figure(figures.draws(arm), f"buffer.draws.{arm.arm}", study=study)
        st.markdown(plain(draws_words(arm)))

    two_a_row(found, drawn)


def draws_words(arm: ArmDraws) -> str:
    """Whether the draws are such as the rule makes, in a sentence."""
    verdict = (
        f"The draws fit the rule: faithful runs stray as far in {arm.p:.0%} of cases."
        if arm.p >= SURE
        else f"The draws do not fit the rule: faithful runs stray as far in {arm.p:.1%} of cases."
    )
    counted = f"{arm.frame['drawn'].sum():,.0f} draws in {arm.steps:,} steps of {arm.runs} runs."
    left = f" {arm.without} runs left out: rule or bucket sizes unknown." if arm.without else ""
    return f"{verdict} {counted}{left}"
