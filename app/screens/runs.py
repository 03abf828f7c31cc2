"""Runs: what was run, with which settings, how whole its log is, and how two runs differ."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import polars as pl
import streamlit as st

from analysis.arms import REFERENCE
from analysis.errors import UserError
from analysis.provenance import Attempts, attempts_of, catalog_facts, lake_files, origin
from analysis.settings_diff import Flat, differences, read_settings
from app import data, state
from app.components.errors import show_error
from app.components.row_picker import row_picker
from app.components.run_quality import checks_of, show_quality
from app.components.run_tables import difference_table, origin_table, run_list, settings_table
from app.components.study_picker import pick_study
from app.links import COMPARE, TRAJECTORIES, compare_query, rows_query

View = Literal["quality", "settings", "origin", "differences"]
VIEWS: dict[str, str] = {
    "quality": "Data quality",
    "settings": "Settings",
    "origin": "Where it comes from",
    "differences": "Difference to another run",
}


@dataclass(frozen=True)
class Runs:
    """What the address holds. run: None is the first that was trained; other: to compare it with.

    check: whose rows are shown; tokens: whether the tokens are read and checked too.
    """

    study: str | None = None
    run: str | None = None
    other: str | None = None
    view: View = "quality"
    check: str | None = None
    tokens: bool = False


def show() -> None:
    data.require_catalog()
    state.restore("runs")
    address = state.read(Runs)
    study = pick_study(Runs, address.study)
    runs = data.answer("run_rows", study=study)
    ids: list[str] = runs["run"].to_list()
    if address.run is not None and address.run not in ids:
        st.warning("Run: this study has none by the name in the address; another is shown.")
    trained: list[str] = runs.filter(pl.col("steps") > 0)["run"].to_list()
    run = address.run if address.run in ids else [*trained, *ids][0]
    st.caption(f"{len(ids)} runs. Click on one to see it below.")
    row_picker(run_list(runs), ids, run, "runs.table", _pick_run)
    _run(address, runs, runs.row(ids.index(run), named=True))
    state.remember("runs")


def _pick_run(run: str) -> None:
    state.write(state.change(state.read(Runs), run=run, check=None, tokens=False))


def _pick_check(check: str) -> None:
    state.write(state.change(state.read(Runs), check=check))


def _run(address: Runs, runs: pl.DataFrame, run: dict[str, Any]) -> None:
    st.code(run["run"], language=None)
    _links(run, address.other if address.other in set(runs["run"]) else None, runs)
    st.segmented_control(
        "What to see",
        get_args(View),
        format_func=lambda view: VIEWS[view],
        label_visibility="collapsed",
        **state.control(Runs, "view", address.view),
    )
    attempts = attempts_of(data.results(), run["study"], run["run"])
    if address.view == "quality":
        _quality(address, run, attempts)
    elif address.view == "settings":
        _settings(run)
    elif address.view == "origin":
        _origin(run, attempts)
    else:
        _differences(address, runs, run)


def _links(run: dict[str, Any], other: str | None, runs: pl.DataFrame) -> None:
    """Where to go on from here; comparing needs a second run."""
    of_arm = {"study": [run["study"]], "arms": [run["arm"]]}
    with st.container(horizontal=True, gap="medium"):
        st.page_link(
            TRAJECTORIES,
            label="Trajectories",
            icon=":material/segment:",
            query_params=rows_query(study=run["study"], run=run["run"]),
        )
        for page, label, icon in (
            ("screens/question.py", "Questions", ":material/timeline:"),
            ("screens/buffer.py", "Experience buffer", ":material/inventory_2:"),
        ):
            st.page_link(page, label=label, icon=icon, query_params=of_arm)
        if other is not None and other != run["run"]:
            arm = runs.filter(pl.col("run") == other)["arm"][0]
            st.page_link(
                COMPARE,
                label="Compare the answers of both",
                icon=":material/difference:",
                query_params=compare_query(
                    study=run["study"],
                    left=run["arm"],
                    right=arm,
                    left_run=run["run"],
                    right_run=other,
                ),
            )


def _quality(address: Runs, run: dict[str, Any], attempts: Attempts | None) -> None:
    st.toggle(
        "Read all tokens of the run too",
        help="Compares the length of every token list; takes seconds for a large run.",
        **state.control(Runs, "tokens", address.tokens),
    )
    checks = checks_of(run["run"], attempts, address.tokens)
    show_quality(run["run"], checks, address.check, _pick_check)


def _settings(run: dict[str, Any]) -> None:
    settings = _read(run)
    if settings is None:
        return
    if not settings:
        st.info("This run has no settings in the catalog.")
        return
    st.caption(f"{len(settings)} settings, by section, as JSON.")
    st.dataframe(settings_table(settings), hide_index=True, height="content")


def _origin(run: dict[str, Any], attempts: Attempts | None) -> None:
    st.dataframe(origin_table(run, attempts), hide_index=True, height="content")
    files = data.ask_catalog(lake_files, data.catalog().parent, run["run"])
    if files.is_empty():
        st.info("The lake has no entry of this run now, so its files cannot be shown.")
    else:
        st.caption(
            f"Its files in the lake: {files['rows'].sum():,} rows, "
            f"{files['bytes'].sum() / 1e6:,.1f} MB. `schema` is the version of the tables that "
            f"they were written with."
        )
        st.dataframe(files, hide_index=True, placeholder="", height="content")
    if facts := data.ask_catalog(catalog_facts, run["study"]):
        st.caption(
            f"This catalog was built on {facts.built} from {facts.entries} entries of the study, "
            f"{facts.rows:,} rows, content {facts.fingerprint}."
        )
        if facts.left_out:
            st.warning(f"{len(facts.left_out)} entries of the study are not in this catalog:")
            lines = [f"{entry}: {reason}" for entry, reason in facts.left_out]
            st.code("\n".join(lines), language=None, wrap_lines=True)


def _differences(address: Runs, runs: pl.DataFrame, run: dict[str, Any]) -> None:
    rows = {row["run"]: row for row in runs.to_dicts()}
    others = [name for name in rows if name != run["run"]]
    if address.other is not None and address.other not in rows:
        found = data.answer("run_rows", run=[address.other]).to_dicts()
        if not found:
            st.warning("Other run: the catalog does not hold the one that the address names.")
        rows |= {row["run"]: row for row in found}
        others += [row["run"] for row in found]
    if not others:
        st.info("This study has no other run to compare with.")
        return
    named = address.other
    other = named if named is not None and named in others else _nearest(run, rows, others)
    st.selectbox("Other run", others, width=400, **state.control(Runs, "other", other))
    left, right = _read(run), _read(rows[other])
    if left is None or right is None:
        return
    apart = [*differences(left, right), *differences(origin(run), origin(rows[other]))]
    if not apart:
        st.info("Settings, code, versions and hardware of these two runs are the same.")
        return
    st.caption(
        f"{len(apart)} values are not the same, of {len({*left, *right})} settings and of commit, "
        f"versions and hardware."
    )
    st.dataframe(difference_table(apart, run["run"], other), hide_index=True, height="content")


def _nearest(run: dict[str, Any], rows: dict[str, Any], others: list[str]) -> str:
    """The run of the reference arm with the same seed, or else the likest to it."""
    return min(
        others,
        key=lambda name: (
            rows[name]["seed"] != run["seed"],
            rows[name]["arm"] != REFERENCE,
            not rows[name]["steps"],
        ),
    )


def _read(run: dict[str, Any]) -> Flat | None:
    """The run's settings; None, saying why, where they cannot be read."""
    try:
        return read_settings(run["settings"])
    except UserError as error:
        show_error(error)
        return None


show()
