"""Live: runs while they are trained, read anew every few seconds."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import plotly.graph_objects as go
import polars as pl
import streamlit as st

from analysis.alarms import WINDOW
from analysis.errors import UserError
from analysis.live import PlannedRun, RunLog, RunStatus, find_runs, is_training
from analysis.live_logs import latest_log, latest_status
from analysis.status_words import as_row, duration, sentences
from analysis.theme import PLOT_CONFIG
from app import data, state
from app.components.errors import show_error
from app.components.figure import themed
from app.components.live_curves import CURVES, clicked, lines_of, live_curves
from app.components.live_curves import FIRST as FIRST_CURVES
from app.components.live_rollouts import pick_group

EVERY = 5  # s
FIRST = ("running", "stopped", "interrupted", "done", "waiting")  # the order of the table
MARKS = {"running": "▶", "stopped": "■", "interrupted": "‖", "done": "✓", "waiting": "…"}
A_ROW = 3  # figures

Logs = list[tuple[PlannedRun, RunLog]]


@dataclass(frozen=True)
class Live:
    """What the address holds. study: None is the one that is being trained. curves: names of
    CURVES, none means the first few. The rest says whose rollouts are shown: None is the run that
    wrote last, its newest step and that step's last group.
    """

    study: str | None = None
    curves: tuple[str, ...] = ()
    run: str | None = None
    step: int | None = None
    group: int | None = None


def show() -> None:
    state.restore("live")
    _board()


@st.fragment(run_every=EVERY)
def _board() -> None:
    try:
        _show_board()
    except UserError as error:  # a fragment shows its own errors, with their traceback
        show_error(error)


def _show_board() -> None:
    runs = find_runs(data.results())
    if not runs:
        st.info(
            f"Nothing is being trained in `{data.results()}`, and nothing has been. "
            f"`make reproduce` trains the default study; its runs appear here at once."
        )
        return
    running = {run.study for run in runs if is_training(run.folder)}
    study = _choose(runs, running)
    logs = [(run, latest_log(run.folder)) for run in runs if run.study == study]
    found = [latest_status(run, log) for run, log in logs]
    found.sort(key=lambda each: FIRST.index(each.state))
    _what_is_wrong(found)
    _progress(found)
    st.caption(
        f"Read at {datetime.now(UTC):%H:%M:%S} UTC, and again every {EVERY} s. A run writes its "
        f"log with each checkpoint; the steps since then come with the next. "
        + ("" if running else "Nothing is being trained now.")
    )
    _curves(study, logs)
    _rollouts(study, [run for run, log in logs if log.steps.height])
    state.remember("live")


def _choose(runs: list[PlannedRun], running: set[str]) -> str:
    """The study that the address names; else one that is running, or that wrote a log last."""
    studies = list(dict.fromkeys(run.study for run in runs))
    named = state.read(Live).study
    newest = max(studies, key=lambda study: (study in running, _last_written(runs, study)))
    study = named if named in studies else newest
    also = {"run": None, "step": None, "group": None}
    st.selectbox("Study", studies, width=320, **state.control(Live, "study", study, **also))
    if named is not None and named not in studies:
        st.caption("The study that was asked for has no run in this folder: here is one that has.")
    return study


def _last_written(runs: list[PlannedRun], study: str) -> float:
    return max((_written(run) for run in runs if run.study == study), default=0.0)


def _written(run: PlannedRun) -> float:
    """When the run wrote to its log last, seconds since 1970; 0 if it never did."""
    try:
        return (run.folder / "log" / "manifest.jsonl").stat().st_mtime
    except OSError:
        return 0.0


def _what_is_wrong(found: list[RunStatus]) -> None:
    """Alarms and reasons as plain text, which may quote what stands in a file."""
    lines = [line for each in found for line in sentences(each)]
    if lines:
        st.error("What went wrong:")
        st.code("\n".join(lines), language=None, wrap_lines=True)


def _progress(found: list[RunStatus]) -> None:
    st.markdown(summary(found))
    rows = [progress_row(each) for each in found]
    st.dataframe(
        pl.DataFrame(rows),
        hide_index=True,
        column_config={
            "progress": st.column_config.ProgressColumn(
                "progress", min_value=0.0, max_value=1.0, format="percent", width="small"
            )
        },
    )


def summary(found: list[RunStatus]) -> str:
    """How far the study is, in a sentence: steps done, and when the runs now trained will end."""
    done, running = ([each for each in found if each.state == word] for word in ("done", "running"))
    steps, planned = sum(each.step for each in found), sum(each.steps for each in found)
    said = f"**{len(done)} of {len(found)} runs done**, {steps:,} of {planned:,} steps logged"
    if len(done) == len(found):
        return f"{said}: this study is trained."
    if not running:
        return f"{said}; none is being trained now."
    etas = [each.eta for each in running if each.eta is not None]
    soon = f"; the last of them ends in about {duration(max(etas))}" if etas else ""
    return f"{said}; {len(running)} being trained now{soon}."


def progress_row(run: RunStatus) -> dict[str, Any]:
    """A line of the table: that of the terminal, with the share of steps that are logged."""
    row = as_row(run)
    share = run.step / run.steps if run.steps else 0.0
    first = {"run": row.pop("run"), "": MARKS[run.state], "state": row.pop("state")}
    return {**first, "progress": min(share, 1.0), **row}


def _curves(study: str, logs: Logs) -> None:
    if all(log.steps.is_empty() for _, log in logs):
        st.info("No step is logged yet: the first come with the first checkpoint.")
        return
    chosen = _choose_curves()
    st.caption(
        f"By step; each point is the mean of the last {WINDOW} steps. A click on a point shows "
        f"rollouts of that step below."
    )
    figures = list(_drawn(study, logs, chosen).items())
    if len(figures) < len(chosen):
        st.caption("No run has logged the other curves.")
    for start in range(0, len(figures), A_ROW):
        part = figures[start : start + A_ROW]
        for column, (name, figure) in zip(st.columns(A_ROW), part, strict=False):
            key = f"live.{study}.{name}"
            with column:
                st.plotly_chart(
                    figure,
                    theme=None,
                    key=key,
                    on_select=_open_step(key, lines_of(figure)),
                    selection_mode="points",
                    config=PLOT_CONFIG,
                )


def _choose_curves() -> tuple[str, ...]:
    """The curves that the address names; the first few if it names none."""
    named = state.read(Live).curves
    chosen = tuple(name for name in CURVES if name in named) or FIRST_CURVES
    st.pills(
        "Curves",
        list(CURVES),
        selection_mode="multi",
        format_func=CURVES.__getitem__,
        label_visibility="collapsed",
        **state.control(Live, "curves", chosen),
    )
    return chosen


def _drawn(study: str, logs: Logs, columns: tuple[str, ...]) -> dict[str, go.Figure]:
    """The figures, drawn anew only when a log, the choice or the theme has changed."""
    made_of = [st.context.theme.type, study, columns, *(log for _, log in logs)]
    before, figures = st.session_state.get("live.drawn", ([], {}))
    same = len(before) == len(made_of) and before[:3] == made_of[:3]
    if not (same and all(a is b for a, b in zip(before[3:], made_of[3:], strict=True))):
        curves = live_curves([(run, log.steps) for run, log in logs], columns)
        figures = {name: themed(figure) for name, figure in curves.items()}
        st.session_state["live.drawn"] = (made_of, figures)
    return dict(figures)


def _open_step(key: str, lines: list[str]) -> Any:
    def changed() -> None:
        if at := clicked(st.session_state[key]["selection"]["points"], lines):
            state.write(state.change(state.read(Live), run=at[0], step=at[1], group=None))

    return changed


def _rollouts(study: str, runs: list[PlannedRun]) -> None:
    """What the model writes: one group of a run, as it was logged last or at the chosen step."""
    if not runs:
        return
    st.subheader("What the model writes", anchor=False)
    live = state.read(Live)
    known = {run.run: run for run in runs}
    if live.run is not None and live.run not in known:
        st.warning("Run: nothing is logged here by the name in the address.")
    newest = max(runs, key=lambda run: (is_training(run.folder), _written(run)))
    run = known.get(live.run or "", newest)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        also = {"step": None, "group": None}
        st.selectbox("Run", list(known), width=320, **state.control(Live, "run", run.run, **also))
        if live.step is not None:
            st.button("Newest step", on_click=_newest)
    pick_group(run.folder, live.step, live.group, state.control(Live, "group", live.group))


def _newest() -> None:
    state.write(state.change(state.read(Live), step=None, group=None))


show()
