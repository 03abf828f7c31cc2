"""Run health: a row a run, with what is unusual about it in words; a click opens the run."""

from typing import Any

import polars as pl
import streamlit as st

from analysis.health import ill, look_at
from app import data, state
from app.components.overview_arms import clicked_row

MEANING = (
    "Reward and all that follows: means of the last 10 steps; updates left out and ungraded "
    "answers: in all. With signal: groups with right and wrong answers. Cut off: answers at the "
    "length limit. Ratio and ESS: of replayed tokens, which on-policy runs have none of."
)


def run_health(study: str) -> None:
    rows = data.answer("health_runs", study=study).filter(pl.col("steps") > 0)
    if rows.is_empty():
        st.info("No training step of this study is in the lake, so there is no health to show.")
        return
    frame = health_frame(
        rows, data.answer("log_coverage", study=study), data.ask_catalog(ill, study)
    )
    unusual = (frame["to look at"] != "nothing unusual").sum()
    st.markdown(f"**{unusual} of {frame.height} runs have something to look at.**")
    event: Any = st.dataframe(
        frame,
        hide_index=True,
        placeholder="",
        key=f"overview.health.{study}",
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        column_config={"to look at": st.column_config.TextColumn(width="large")},
        alt="Every run with the state of its training",
    )
    st.caption(f"{MEANING} A click on a run opens it.")
    with st.container(horizontal=True):
        for title, page, icon in (
            ("Settings and logs of the runs", "runs", ":material/list_alt:"),
            ("Live, while they train", "live", ":material/monitoring:"),
        ):
            st.page_link(
                f"screens/{page}.py", label=title, icon=icon, query_params={"study": study}
            )
    if (row := clicked_row(event["selection"])) is not None:
        run = str(frame["run"][row])
        state.go("screens/runs.py", {"study": [study], "run": [run]})


def health_frame(rows: pl.DataFrame, coverage: pl.DataFrame, alarms: pl.DataFrame) -> pl.DataFrame:
    """The table: rows of `health_runs` in words of the reader, with what is to be looked at."""
    missing = dict(coverage.select("run", "missing").iter_rows())
    sentences: dict[str, list[str]] = {}
    for run, sentence in alarms.select("run", "sentence").iter_rows():
        sentences.setdefault(run, []).append(sentence)
    marks = [
        look_at(row, missing.get(row["run"]), sentences.get(row["run"], []))
        for row in rows.iter_rows(named=True)
    ]
    return rows.select(
        "run",
        pl.Series("to look at", marks, pl.String),
        "arm",
        "seed",
        "status",
        "steps",
        pl.col("reward", "entropy").round(3),
        pl.col("length").round(1),
        *((100 * pl.col(name)).round(1).alias(title) for name, title in PERCENT.items()),
        pl.col("ratio_replayed").round(3).alias("ratio"),
        pl.col("grad_norm").round(3).alias("gradient norm"),
        pl.col("skipped_updates").alias("updates left out"),
        "ungraded",
    )


PERCENT = {
    "signal_share": "with signal, %",
    "truncated_share": "cut off, %",
    "clipped_share": "clipped, %",
    "ess_replayed": "ESS, %",
}
