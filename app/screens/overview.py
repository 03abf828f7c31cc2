"""Overview: what a study came to, with intervals, and what that says about the claims."""

from dataclasses import dataclass

import polars as pl
import streamlit as st

from analysis.closing import UNADJUSTED, meaning
from analysis.drawing import study_facts
from analysis.figures import Figure
from analysis.stage_outputs import StageOutputs
from analysis.theme import PLOT_CONFIG
from app import data, state
from app.components.bucket_bars import bucket_bars
from app.components.closing_table import closing_table
from app.components.narrow_figure import narrow
from app.components.verdict_card import verdict_card

CARDS_A_ROW = 3
NOT_TESTABLE = "not testable here"
FIRST_FIGURES = 4  # accuracy, difference, curves: the rest comes after the verdicts


@dataclass(frozen=True)
class Overview:
    """What the address holds: a study, and for imports which one; None is the first."""

    study: str | None = None
    run: str | None = None


def show() -> None:
    data.require_catalog()
    state.restore("overview")
    runs = data.answer("runs_overview")
    largest = runs.group_by("study").agg(pl.sum("steps")).sort("steps", "study", descending=True)
    studies: list[str] = largest["study"].to_list()
    if not studies:
        st.info("The catalog holds no run yet. Run `make reproduce`, or `exgrpo import FILE`.")
        return
    address = state.read(Overview)
    study = _choose("Study", studies, address.study, "study")
    runs = runs.filter(pl.col("study") == study)
    if study == "imports":
        _imported(runs, address.run)
    else:
        _trained(study, runs)
    state.remember("overview")


def _choose(title: str, known: list[str], named: str | None, *fields: str) -> str:
    """Let one of `known` be chosen; the address then holds `fields`, the last of them this one."""
    key = f"overview.{fields[-1]}"
    st.session_state[key] = named if named in known else known[0]
    st.selectbox(title, known, key=key, on_change=_changed, args=fields, width=320)
    if named is not None and named not in known:
        st.warning(f"{title}: the catalog does not hold the one that the address names.")
    return str(st.session_state[key])


def _changed(*fields: str) -> None:
    state.write(Overview(**{field: st.session_state[f"overview.{field}"] for field in fields}))


def _trained(study: str, runs: pl.DataFrame) -> None:
    world = study_facts(study, data.answer("study_runs", study=study)).world
    outputs = data.stage_outputs(study)
    if outputs is None:
        st.info(
            f"This study has runs, but no analyses yet: `make reproduce STUDY={study}` goes on "
            f"where it was stopped. Its trajectories can be read now."
        )
        _runs(runs)
        return
    st.markdown(f"**{world[0].upper()}{world[1:]}.**")
    st.dataframe(closing_table(outputs.comparison), hide_index=True)
    st.caption(f"{meaning(outputs.comparison)} {UNADJUSTED}")
    if not outputs.figures:
        st.info(f"No figures yet: `exgrpo figures --study {study}` makes them.")
    lines = {each.name: each.lines for each in outputs.observed}
    _figures(study, outputs.figures[:FIRST_FIGURES], lines)
    _claims(outputs)
    if later := outputs.figures[FIRST_FIGURES:]:
        st.subheader("How training went", anchor=False)
        _figures(study, later, lines)
    _runs(runs)


def _figures(study: str, figures: list[Figure], lines: dict[str, list[str]]) -> None:
    """Figures two a row; lines: what an observation found, by the name of its figure."""
    for left in range(0, len(figures), 2):
        part = figures[left : left + 2]
        for column, figure in zip(st.columns(2, gap="medium"), part, strict=False):
            with column:
                st.plotly_chart(
                    narrow(figure.plot),
                    theme=None,
                    key=f"{study}.{figure.name}",
                    config=PLOT_CONFIG,
                )
                st.caption(figure.reading)
                if figure.name in lines:
                    with st.expander("In words"):
                        st.markdown("\n".join(f"- {line}" for line in lines[figure.name]))


def _claims(outputs: StageOutputs) -> None:
    st.subheader("What this study says about the claims", anchor=False)
    st.caption(
        "A verdict speaks about this study's model and task, never about the paper's. "
        "Supported: the whole interval lies beyond the threshold; contradicted: it lies on the "
        "other side; inconclusive: it holds the threshold, so this study can tell neither way."
    )
    decided = [pair for pair in outputs.verdicts if pair[1].verdict != NOT_TESTABLE]
    for left in range(0, len(decided), CARDS_A_ROW):
        part = decided[left : left + CARDS_A_ROW]
        for column, (claim, verdict) in zip(st.columns(CARDS_A_ROW), part, strict=False):
            with column:
                verdict_card(claim, verdict)
    rest = [pair for pair in outputs.verdicts if pair[1].verdict == NOT_TESTABLE]
    with st.expander(f"Not testable in this study: {len(rest)}"):
        for claim, verdict in rest:
            st.markdown(f"**{claim.id}** {claim.short}. {verdict.reading}")


def _imported(runs: pl.DataFrame, named: str | None) -> None:
    st.markdown("Imported model outputs, graded by this workbench's own grader.")
    run = _choose("Import", runs["run"].to_list(), named, "study", "run")
    buckets = data.answer("run_buckets", run=run)
    table, bars = st.columns([2, 3], gap="medium")
    table.caption("Questions by number of right answers: the buckets")
    table.dataframe(
        buckets.select(
            pl.format("{} of {}", "group_successes", "group_size").alias("k of K"),
            pl.col("groups").alias("questions"),
        ),
        hide_index=True,
    )
    bars.plotly_chart(bucket_bars(buckets), theme=None, key=f"buckets.{run}", config=PLOT_CONFIG)
    _runs(runs, run=run)


def _runs(runs: pl.DataFrame, **narrower: str) -> None:
    with st.expander("Runs"):
        st.dataframe(runs.drop("study"), hide_index=True, placeholder="")
    st.page_link(
        "screens/trajectories.py",
        label="Read the trajectories",
        icon=":material/segment:",
        query_params={"study": runs["study"][0], **narrower},
    )


show()
