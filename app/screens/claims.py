"""Claims: the whole ledger, what a study says about each line, and what that rests on."""

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote
from typing import get_args

import polars as pl
import streamlit as st

from analysis.claims import Claim, load_ledger
from analysis.errors import UserError
from analysis.provenance import catalog_facts, judged_at
from analysis.settings_diff import differences, read_settings
from analysis.stage_outputs import read_verdicts
from app import data, state
from app.components.claim_card import show_claim
from app.components.claim_evidence import figure_of, queries_of, rows_behind
from app.components.claim_table import (
    MARKS,
    Judged,
    KindChoice,
    Order,
    VerdictChoice,
    chosen_claim,
    claim_table,
    listed,
)
from app.components.errors import show_error
from app.components.figure import show_titled
from app.components.plain import plain
from app.components.row_picker import row_picker
from app.components.run_tables import difference_table
from app.components.study_picker import pick_study, say_chosen_by_tests
from app.links import TRAJECTORIES, named_query, rows_query

WIDTHS = {"the paper": 120, "this study": 190, "from": 165}  # px
KINDS = {"all": "all", "tested": "tested statistically", "counted": "decided by counting"}
ORDERS = {"ledger": "as in the ledger", "verdict": "what is decided first"}


@dataclass(frozen=True)
class Claims:
    """What the address holds: filters and order of the table, and the claim that is shown."""

    study: str | None = None
    claim: str | None = None
    verdict: VerdictChoice = "all"
    kind: KindChoice = "all"
    order: Order = "ledger"


def show() -> None:
    data.require_catalog()
    state.restore("claims")
    address = state.read(Claims)
    study = pick_study(Claims, address.study)
    ledger = _ledger(study)
    say_chosen_by_tests(study)
    _counts(ledger)
    _filters(address, judged=any(verdict for _, verdict in ledger))
    claims = listed(ledger, address.verdict, address.kind, address.order)
    ids = [claim.id for claim, _ in claims]
    chosen = chosen_claim([claim.id for claim, _ in ledger], address.claim)
    if claims:
        row_picker(
            claim_table(claims),
            ids,
            chosen,
            "claims.table",
            _pick,
            height=380,
            column_config={name: st.column_config.Column(width=w) for name, w in WIDTHS.items()},
        )
    else:
        st.info("No claim of the ledger passes these filters.")
    if address.claim is not None and chosen is None:
        st.warning("Claim: the ledger has none by the name in the address.")
    if chosen is None:
        st.caption("Click on a claim to see how it was tested, and what the verdict rests on.")
    else:
        _claim(study, ledger, ids, chosen)
    _origin(study)
    state.remember("claims")


def _ledger(study: str) -> Sequence[Judged]:
    """The ledger as the study's analysis judged it; without verdicts where it was not analysed."""
    try:
        verdicts = read_verdicts(data.results(), study)
    except UserError as error:
        show_error(error)
        verdicts = None
    if verdicts is not None:
        return verdicts
    if study == "imports":
        st.info("Imported outputs are in no study with arms, so nothing is judged by them.")
    else:
        st.info(
            "This study was not analysed yet, so there are no verdicts. What is claimed can be "
            "read now; this command judges it:"
        )
        st.code(f"exgrpo analyse --study {quote(study)}", language=None)
    return [(claim, None) for claim in load_ledger().claims]


def _counts(ledger: Sequence[Judged]) -> None:
    words = [verdict.verdict for _, verdict in ledger if verdict]
    if words:
        counted = [f"{mark} {words.count(word)} {word}" for word, mark in MARKS.items()]
        st.markdown(" · ".join(counted))
        st.caption(
            "A verdict speaks about this study's model and task, never about the paper's. "
            "Supported: the whole interval lies beyond the threshold; contradicted: it lies on "
            "the other side; inconclusive: it holds the threshold. The paper prints single runs "
            "without intervals."
        )


def _filters(address: Claims, judged: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if judged:
            st.selectbox(
                "Verdict",
                get_args(VerdictChoice),
                width=240,
                **state.control(Claims, "verdict", address.verdict),
            )
        st.selectbox(
            "Kind",
            get_args(KindChoice),
            format_func=lambda kind: KINDS[kind],
            width=240,
            **state.control(Claims, "kind", address.kind),
        )
        if judged:
            st.selectbox(
                "Order",
                get_args(Order),
                format_func=lambda order: ORDERS[order],
                width=220,
                **state.control(Claims, "order", address.order),
            )


def _pick(claim: str | None) -> None:
    state.write(state.change(state.read(Claims), claim=claim))


def _claim(study: str, ledger: Sequence[Judged], ids: list[str], chosen: str) -> None:
    claim, verdict = next(each for each in ledger if each[0].id == chosen)
    _neighbours(ids, chosen)
    family = sum(1 for _, each in ledger if each and each.p is not None)
    show_claim(claim, verdict, study, family)
    _links(claim, study)
    _figure(claim, study)
    _arms(claim, study)


def _neighbours(ids: list[str], chosen: str) -> None:
    """Previous and next claim of the table; the arrow keys do the same."""
    place = ids.index(chosen) if chosen in ids else None
    before = ids[place - 1] if place else None
    after = ids[place + 1] if place is not None and place + 1 < len(ids) else None
    with st.container(horizontal=True):
        for label, key, to in (("Previous", "Left", before), ("Next", "Right", after)):
            st.button(
                label,
                key=f"claims.{label}",
                shortcut=key,
                on_click=_pick,
                args=(to,),
                disabled=to is None,
            )
        st.button("Close", key="claims.close", on_click=_pick, args=(None,))


def _links(claim: Claim, study: str) -> None:
    """The rows and the queries that the verdict rests on."""
    rows, queries = rows_behind(claim, study), queries_of(claim)
    if not queries:
        st.caption("It is decided by the paper's own tables, in `analysis/paper/`.")
        return
    with st.container(horizontal=True, gap="medium"):
        if rows:
            st.page_link(
                TRAJECTORIES,
                label="The rows behind it",
                icon=":material/segment:",
                query_params=rows_query(**rows),
            )
        for name in queries:
            st.page_link(
                "screens/sql.py",
                label=f"Query {name}",
                icon=":material/database:",
                query_params=named_query(name, study=study),
            )


def _figure(claim: Claim, study: str) -> None:
    name = figure_of(claim)
    outputs = data.stage_outputs(study) if name else None
    found = outputs.figure(name) if name and outputs else None
    if found is None:
        return
    show_titled(found.plot, key=f"claims.figure.{name}", study=study)
    st.caption(found.reading)


def _arms(claim: Claim, study: str) -> None:
    """The runs of the claim's arms, and what two arms have different by their settings."""
    if not claim.arms:
        return
    runs = data.answer("run_rows", study=study)
    first = {
        arm: runs.filter(pl.col("arm") == arm).row(0, named=True)
        for arm in claim.arms
        if arm in set(runs["arm"])
    }
    with st.expander("The arms and their settings"):
        for arm in claim.arms:
            if arm not in first:
                st.text(f"{arm}: not in this study")
        with st.container(horizontal=True, gap="medium"):
            for arm, run in first.items():
                st.page_link(
                    "screens/runs.py",
                    label=f"Settings of {plain(arm)}",
                    icon=":material/list_alt:",
                    query_params={"study": study, "run": run["run"], "view": "settings"},
                )
        if len(first) < 2:
            return
        (left, one), (right, other) = list(first.items())[:2]
        apart = [
            each
            for each in differences(
                read_settings(one["settings"]), read_settings(other["settings"])
            )
            if each.name not in ("arm", "seed")
        ]
        st.caption("What the first two arms have different, by the settings of their first runs:")
        st.dataframe(difference_table(apart, left, right), hide_index=True, height="content")


def _origin(study: str) -> None:
    facts, judged = data.ask_catalog(catalog_facts, study), judged_at(data.results(), study)
    if facts is None:
        return
    runs = data.answer("run_rows", study=study)
    commits = ", ".join(sorted({*runs["commit"].drop_nulls()}))
    st.caption(
        f"{runs.height} runs, {facts.rows:,} rows; catalog built on {facts.built}, content "
        f"{facts.fingerprint}" + (f"; claims judged on {judged}." if judged else ".")
    )
    st.text(f"commit {commits}")
    if judged and judged < facts.built:
        st.caption("The catalog is newer than the verdicts: `exgrpo analyse` judges anew.")


show()
