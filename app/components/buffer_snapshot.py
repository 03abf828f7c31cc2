"""The experience buffer of one run after one step, and the trajectories that it replays most."""

import polars as pl
import streamlit as st

from app import data, state
from app.components.row_opener import rows_that_open
from app.links import QUESTION, open_rows

HEIGHT = 420


def snapshot(study: str, arm: str, run: str, step: int) -> None:
    """Questions in the buffer of a run after a step; a click opens the question."""
    rows = data.answer("buffer_snapshot", study=study, run=[run], step=step)
    if rows.is_empty():
        st.info(f"The buffer of this run held nothing after step {step}.")
        return
    inside = rows.filter(pl.col("bucket").is_not_null())
    st.markdown(
        f"**{inside.height:,} questions** in buckets after step {step}, "
        f"with **{rows['stored'].sum():,} stored trajectories**. Click one to see its history."
    )
    table = rows.sort("bucket", "question", nulls_last=True).select(
        "question",
        "bucket",
        "stored",
        "entered",
        "draws",
        "replays",
        "last_replay",
        since=step - pl.col("last_replay"),
    )
    questions = table["question"].to_list()
    rows_that_open(
        table,
        "buffer.snapshot",
        lambda row: _open_question(study, arm, questions[row]),
        height=HEIGHT,
        column_config={
            "bucket": st.column_config.NumberColumn(help="k right of its latest visit"),
            "stored": st.column_config.NumberColumn(help="trajectories that may be replayed"),
            "entered": st.column_config.NumberColumn(help="step at which it last came in"),
            "draws": st.column_config.NumberColumn(help="visits at which it was drawn so far"),
            "replays": st.column_config.NumberColumn(help="trajectories replayed so far"),
            "last_replay": st.column_config.NumberColumn("last replay", help="step"),
            "since": st.column_config.NumberColumn(help="steps since the last replay"),
        },
    )


def most_replayed(study: str, run: str) -> None:
    """The trajectories that a run replayed most; a click opens the last replay."""
    rows = data.answer("buffer_most_replayed", study=study, run=[run])
    if rows.is_empty():
        st.info("This run replays no trajectory.")
        return
    opened = rows["opened"].to_list()
    valid = (
        pl.when(pl.col("chain_valid"))
        .then(pl.lit("valid"))
        .when(pl.col("chain_valid").is_not_null())
        .then(pl.lit("flawed"))
        .otherwise(pl.lit(""))
    )
    rows_that_open(
        rows.select(
            "question",
            "replays",
            "birth_step",
            "first_replay",
            "last_replay",
            valid.alias("chain"),
            "source",
        ),
        "buffer.most",
        lambda row: open_rows(study=study, run=run, replayed=True, trajectory=opened[row]),
        height=HEIGHT,
        column_config={
            "birth_step": st.column_config.NumberColumn("sampled at"),
            "first_replay": st.column_config.NumberColumn("first replay"),
            "last_replay": st.column_config.NumberColumn("last replay"),
        },
    )


def _open_question(study: str, arm: str, question: str) -> None:
    state.go(QUESTION, {"study": [study], "question": [question], "arms": [arm]})
