"""How whole the log of a run is: every check as a row, and the trajectories behind one of them."""

from typing import Any

import polars as pl
import streamlit as st

from analysis import data_quality as quality
from analysis.data_quality import Check
from analysis.provenance import Attempts, lake_files
from app import data
from app.components.plain import plain
from app.components.row_picker import row_picker
from app.components.run_tables import check_table
from app.components.trajectory_rows import ANSWER, PREVIEW_TEXT
from app.links import TRAJECTORIES, named_query, open_rows, rows_query

MOST = 50  # trajectories shown behind a check

# Checks whose rows the screen Trajectories can filter for.
FILTERS: dict[str, dict[str, Any]] = {
    "ungraded": {"ungraded": True},
    "no_source": {"replayed": True},
    "evaluation_ungraded": {"source": "evaluation", "ungraded": True},
}


def coverage_of(run: str) -> dict[str, Any]:
    """The run's row of `log_coverage`, which has one for every run. Raises UserError."""
    return data.answer("log_coverage", run=[run]).row(0, named=True)


def checks_of(run: str, attempts: Attempts | None, with_tokens: bool) -> list[Check]:
    """Every check of a run, those that found something first. Raises UserError."""
    asked = {"run": [run]}
    folder = data.catalog().parent
    checks = [
        *quality.coverage_checks(coverage_of(run)),
        *quality.step_checks(_row("quality_steps", run)),
        *quality.trajectory_checks(_row("quality_trajectories", run)),
        *quality.evaluation_checks(_row("quality_evaluations", run)),
        *quality.file_checks(data.ask_catalog(lake_files, folder, run)),
        *quality.attempt_checks(attempts),
        *quality.judge_checks(data.answer("verifier_disagreement", **asked).to_dicts()),
    ]
    if with_tokens:
        checks += data.ask_catalog(quality.token_checks, folder, run) or []
    order = ("look", "ok", "nothing to check")
    return sorted(checks, key=lambda check: order.index(check.state))


def show_quality(run: str, checks: list[Check], chosen: str | None, on_pick: Any) -> None:
    """The coverage in a sentence, the checks, and what lies behind the chosen one."""
    st.markdown(quality.coverage_sentence(coverage_of(run)))
    checkable = [check for check in checks if check.state != "nothing to check"]
    found = [check for check in checkable if check.state == "look"]
    st.caption(
        (f"{len(found)} of {len(checkable)} checks found something. " if found else "")
        + "Click on a check to see what lies behind it."
    )
    row_picker(
        check_table(checkable),
        [check.name for check in checkable],
        chosen,
        "runs.checks",
        on_pick,
        height="content",
    )
    if idle := [check for check in checks if check not in checkable]:
        with st.expander(f"Checks with nothing to look at in this run: {len(idle)}"):
            st.text("\n".join(f"{check.title}. {check.meaning}" for check in idle))
    by_name = {check.name: check for check in checks}
    if chosen is None:
        return
    if chosen not in by_name:
        st.warning("Check: there is none by the name in the address.")
        return
    _behind(run, by_name[chosen])


def _behind(run: str, check: Check) -> None:
    st.markdown(behind_heading(check))
    if check.rows and check.found:
        rows = data.answer("quality_rows", run=[run], check=check.name, most=MOST)
        event: Any = st.dataframe(
            rows.select(
                "step", "question", ANSWER, "length",
                pl.col("mean_entropy").round(4).alias("entropy"), PREVIEW_TEXT.alias("response"),
                "trajectory",
            ),
            key=f"runs.behind.{check.name}",
            hide_index=True,
            on_select="rerun",
            selection_mode=["single-row", "single-cell"],
            placeholder="",
        )  # fmt: skip
        selection = event["selection"]
        picked = [*selection["rows"], *(row for row, _ in selection["cells"])]
        if check.found > rows.height:
            st.caption(f"The first {rows.height} of them. A click on one opens its text.")
        st.page_link(
            "screens/sql.py",
            label="Ask for them in SQL",
            icon=":material/database:",
            query_params=named_query("quality_rows", run=[run], check=check.name),
        )
        if picked:
            open_rows(run=run, trajectory=rows["trajectory"][picked[0]])
    if check.found and (filters := rows_behind(check)):
        st.page_link(
            TRAJECTORIES,
            label="Read them in Trajectories",
            icon=":material/segment:",
            query_params=rows_query(run=run, **filters),
        )
    if not check.found:
        st.caption("Nothing was found, so there is nothing to show.")


def behind_heading(check: Check) -> str:
    """What was chosen, as Markdown: the title of a check may name a judge of somebody's file."""
    return f"**{plain(check.title)}**: {check.found:,} of {check.of:,}."


def rows_behind(check: Check) -> dict[str, Any] | None:
    """Filters of the screen Trajectories that show what a check is about; None if none do."""
    if check.step is not None:
        return {"step_min": check.step, "step_max": check.step}
    return FILTERS.get(check.name)


def _row(name: str, run: str) -> dict[str, Any] | None:
    """The run's row of a named query with one row a run."""
    rows = data.answer(name, run=[run])
    return None if rows.is_empty() else rows.row(0, named=True)
