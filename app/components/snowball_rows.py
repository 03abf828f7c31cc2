"""The replayed trajectories with a marker, those that were replayed most or did most first."""

import polars as pl
import streamlit as st

from app import data
from app.components.row_opener import rows_that_open
from app.links import open_rows

HEIGHT = 420
MOST = 200  # rows of the table


def offenders(study: str, marker: str, by_later: bool) -> None:
    """A table of them; a click opens the trajectory, with its lineage."""
    rows = data.answer("snowball_rows", study=study, marker=marker, by_later=by_later)
    if rows.is_empty():
        st.info("No replayed trajectory of this study has this marker.")
        return
    order = ["later_marked", "replays"] if by_later else ["replays", "later_marked"]
    rows = rows.sort([*order, "source"], descending=[True, True, False]).head(MOST)
    opened, runs = rows["opened"].to_list(), rows["run"].to_list()
    rows_that_open(
        rows.select(
            "arm",
            "seed",
            "question",
            "replays",
            "first_replay",
            "last_replay",
            pl.format("{} of {}", "earlier_marked", "earlier_right").alias("before"),
            pl.format("{} of {}", "later_marked", "later_right").alias("after"),
            "source",
        ),
        "snowball.rows",
        lambda row: open_rows(study=study, run=runs[row], replayed=True, trajectory=opened[row]),
        height=HEIGHT,
        column_config={
            "first_replay": st.column_config.NumberColumn("first replay", help="step"),
            "last_replay": st.column_config.NumberColumn("last replay", help="step"),
            "before": st.column_config.Column(
                help="marked ones of the question's right fresh answers until the first replay"
            ),
            "after": st.column_config.Column(
                help="the same at later visits, to which the replay may have contributed"
            ),
            "source": st.column_config.Column("as first sampled"),
        },
    )
    st.caption(
        "Before and after count right fresh answers to the question; a rise alone proves nothing, "
        "see above. Click a row to read the trajectory."
    )
