"""Live: runs while they are trained, read anew every few seconds."""

from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl
import streamlit as st

from analysis.alarms import WINDOW
from analysis.errors import UserError
from analysis.live import PlannedRun, RunStatus, find_runs, is_training, read_log, run_status
from analysis.status_words import as_row, sentences
from analysis.theme import PLOT_CONFIG
from app import data, state
from app.components.errors import show_error
from app.components.live_curves import live_curves

EVERY = 5  # s
FIRST = ("running", "stopped", "interrupted", "done", "waiting")  # the order of the table


@dataclass(frozen=True)
class Live:
    """What the address holds: a study; None is the one that is being trained."""

    study: str | None = None


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
    logs = [(run, read_log(run.folder)) for run in runs if run.study == study]
    found = [run_status(run, log) for run, log in logs]
    found.sort(key=lambda each: FIRST.index(each.state))
    _what_is_wrong(found)
    st.dataframe(pl.DataFrame([as_row(each) for each in found]), hide_index=True)
    st.caption(
        f"Read at {datetime.now(UTC):%H:%M:%S} UTC, and again every {EVERY} s. A run writes its "
        f"log with each checkpoint; the steps since then come with the next. "
        + ("" if running else "Nothing is being trained now.")
    )
    _curves(study, [(run, log.steps) for run, log in logs])
    state.remember("live")


def _choose(runs: list[PlannedRun], running: set[str]) -> str:
    """The study that the address names; else one that is running, or that wrote a log last."""
    studies = list(dict.fromkeys(run.study for run in runs))
    named = state.read(Live).study
    newest = max(studies, key=lambda study: (study in running, _last_written(runs, study)))
    st.session_state["live.study"] = named if named in studies else newest
    st.selectbox("Study", studies, key="live.study", on_change=_changed, width=320)
    if named is not None and named not in studies:
        st.warning("Study: there is none here by the name in the address.")
    return str(st.session_state["live.study"])


def _changed() -> None:
    state.write(Live(study=st.session_state["live.study"]))


def _last_written(runs: list[PlannedRun], study: str) -> float:
    manifests = (run.folder / "log" / "manifest.jsonl" for run in runs if run.study == study)
    return max((path.stat().st_mtime for path in manifests if path.is_file()), default=0.0)


def _what_is_wrong(found: list[RunStatus]) -> None:
    """Alarms and reasons as plain text, which may quote what stands in a file."""
    lines = [line for each in found for line in sentences(each)]
    if lines:
        st.error("What went wrong:")
        st.code("\n".join(lines), language=None, wrap_lines=True)


def _curves(study: str, runs: list[tuple[PlannedRun, pl.DataFrame]]) -> None:
    if all(steps.is_empty() for _, steps in runs):
        st.info("No step is logged yet: the first come with the first checkpoint.")
        return
    st.caption(f"By step; each point is the mean of the last {WINDOW} steps.")
    figures = live_curves(runs)
    for column, (name, figure) in zip(st.columns(len(figures)), figures.items(), strict=True):
        with column:
            st.plotly_chart(figure, theme=None, key=f"live.{study}.{name}", config=PLOT_CONFIG)


show()
