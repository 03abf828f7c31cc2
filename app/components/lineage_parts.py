"""The parts of the screen Lineage below its head: timeline, draws, uses, what came after."""

from collections.abc import Callable
from typing import Any

import polars as pl
import streamlit as st

from analysis.lineage import agreement, change, draws, order_words, telling_draw
from analysis.lineage_figures import lineage_timeline
from app import data
from app.components.figure import show_figure
from app.components.lineage_tables import candidate_rows, draw_rows, use_rows
from app.components.row_opener import rows_that_open
from app.components.row_picker import row_picker
from app.links import open_rows

HOW_TO_READ = (
    "Top: mean entropy of every stored trajectory of the question whenever it was drawn, under the "
    "policy at that step. Middle: importance ratio and weight of the gradient at each use. Bottom: "
    "fresh rollouts of the question. Click a mark to read what is behind it."
)
CAUTION = (
    "This is no causal estimate: the rest of each batch trained the policy too, a question is "
    "drawn because of how it fared before, and a share of a few rollouts moves by chance."
)


def show_timeline(
    row: dict[str, Any],
    candidates: pl.DataFrame,
    uses: pl.DataFrame,
    visits: pl.DataFrame,
    birth: tuple[int, float | None] | None,
    last: int,
) -> None:
    """The figure over all steps of the run."""
    st.caption(HOW_TO_READ)
    plot = lineage_timeline(
        row["trajectory"], row["arm"], candidates, uses, visits, birth, max(last, 1)
    )
    alt = (
        "Candidates, uses and the question's fresh rollouts by step; the tables below say the same"
    )
    show_figure(plot, "lineage.timeline", alt, study=row["study"])


def show_draws(
    row: dict[str, Any],
    rules: dict[str, Any] | None,
    candidates: pl.DataFrame,
    chosen: int | None,
    on_pick: Callable[[str], None],
    on_open: Callable[[str], None],
) -> None:
    """Each time that the question came back: who was there, who was taken, whom others take."""
    st.subheader("Each time its question was drawn", anchor=False)
    if candidates.is_empty():
        st.caption("The log holds no draw with candidates for this question in this run.")
        return
    table = draws(candidates, row["trajectory"])
    if rules is not None and rules["order"] is not None:
        st.caption(f"This arm takes {order_words(rules)}.")
    _corrected_against_released(row, table)
    steps = [str(step) for step in table["step"]]
    shown = str(chosen) if str(chosen) in steps else str(telling_draw(table))
    row_picker(
        draw_rows(table, row["trajectory"], row["run"]),
        steps,
        shown,
        "lineage.draws",
        on_pick,
        height=min(300, 38 + 35 * table.height),
    )
    its = candidates.filter(pl.col("step") == int(shown))
    st.caption(
        f"The candidates at step {shown}, in this arm's order; #1 is the lowest by a metric. "
        "Click one to see its lineage."
    )
    row_picker(
        candidate_rows(its, row["trajectory"], row["run"]),
        its["source"].to_list(),
        row["trajectory"],
        "lineage.candidates",
        on_open,
        height=min(300, 38 + 35 * its.height),
    )


def _corrected_against_released(row: dict[str, Any], table: pl.DataFrame) -> None:
    """How often the released code's entropy chooses as the correct one: here and in the run."""
    st.markdown("**Corrected against released choice**")
    lines = [
        f"- At the draws that took this trajectory: {same(table.filter('taken'))}.",
        f"- At all draws of its question in this run: {same(table)}.",
    ]
    audit = data.answer("selection_audit", run=[row["run"]])
    if audit.height:
        run = audit.row(0, named=True)
        lines.append(f"- In the whole run: {whole_run(run)}.")
    st.markdown("\n".join(lines))
    st.caption(
        "The released code's mask reads the entropies of other positions (LUFFY#57). Counted are "
        "draws with more than one candidate: does its lowest value name the same trajectory as the "
        "lowest mean entropy?"
    )


def same(table: pl.DataFrame) -> str:
    """How often the two choices agree, over rows of `analysis.lineage.draws`."""
    found = agreement(table)
    if found.draws:
        return f"the same trajectory in {found.same} of {found.draws}"
    if (table["stored"] > 1).any():
        return "the log holds no ranks, so nothing to tell apart"
    return "never more than one candidate, so nothing to tell apart"


def whole_run(audit: dict[str, Any]) -> str:
    """The same over a run, from its row of the query `selection_audit`."""
    if audit["released"] is None:
        return f"the log holds no ranks of its {audit['draws']:,} draws"
    return (
        f"in {audit['released']:.0%} of {audit['draws']:,} draws; a random choice would in "
        f"{audit['chance']:.0%}"
    )


def show_uses(row: dict[str, Any], uses: pl.DataFrame) -> None:
    """Each replay: what gradient it gave, and how fresh rollouts fared around it."""
    st.subheader("Each use", anchor=False)
    if (found := change(uses)) is not None:
        st.markdown(
            f"At {found.uses} use{'s' * (found.uses != 1)} with a later visit, fresh rollouts of "
            f"the question were right {found.then:.0%} of the time then (sampled before that "
            f"update) and {found.after:.0%} at the next visit."
        )
        st.caption(CAUTION)
    st.caption("Click a row to read the trajectory and its group as they were at that use.")
    rows_that_open(
        use_rows(uses),
        "lineage.uses",
        lambda place: open_rows(study=row["study"], trajectory=uses["trajectory"][place]),
        height=min(360, 38 + 35 * uses.height),
    )
