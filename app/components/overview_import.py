"""The overview of an import: how many of its questions have k of K right answers."""

from typing import Any

import polars as pl
import streamlit as st

from app import data, state
from app.components.bucket_bars import bucket_bars
from app.components.figure import show_figure
from app.links import rows_query


def imported(kind: type[Any], runs: list[str], named: str | None) -> None:
    """Let one of the imports be chosen into the field `run` of `kind`, and show it."""
    st.markdown("Imported model outputs, graded by this workbench's own grader.")
    run = named if named in runs else runs[0]
    st.selectbox("Import", runs, width=320, **state.control(kind, "run", run))
    if named is not None and named not in runs:
        st.warning("Import: the catalog does not hold the one that the address names.")
    buckets = data.answer("run_buckets", run=run)
    table, bars = st.columns([2, 3], gap="medium")
    with table:
        st.caption("Questions by number of right answers: the buckets")
        st.dataframe(
            buckets.select(
                pl.format("{} of {}", "group_successes", "group_size").alias("k of K"),
                pl.col("groups").alias("questions"),
            ),
            hide_index=True,
        )
    with bars:
        show_figure(
            bucket_bars(buckets),
            f"buckets.{run}",
            alt="Questions by number of right answers",
            study="imports",
            run=run,
        )
        st.caption("A click on a bar opens the answers to its questions.")
    st.page_link(
        "screens/trajectories.py",
        label="Read the trajectories",
        icon=":material/segment:",
        query_params=rows_query(study="imports", run=run),
    )
