"""The rollouts of a group that a job has logged, as text: what the model writes now."""

from pathlib import Path
from typing import Any

import streamlit as st

from analysis.live_logs import Group, group_of, groups_of
from app.components.answers import ANSWERS

LONG = 700  # characters: more get a box of their own to scroll in
MOST_LINES = 9
BOX = 220  # px
A_ROW = 2  # rollouts


def heading(row: dict[str, Any]) -> str:
    """One line about a rollout: its slot, how it was graded, where it comes from."""
    told = [f"slot {row['slot']}", ANSWERS[row["correct"]]]
    told.append("↻ replayed" if row["replayed"] else "fresh")
    if row["length"] is not None:
        told.append(f"{row['length']} tokens" + (", cut off" if row["finish"] == "length" else ""))
    if row["mean_entropy"] is not None:
        told.append(f"entropy {row['mean_entropy']:.3f} nat/token")
    return " · ".join(told)


def pick_group(folder: Path, step: int | None, group: int | None, control: dict[str, Any]) -> None:
    """Let a group of a step be chosen, and show it; the newest step and its last group unless
    given. `control`: what ties the choice to the address, its key among it.
    """
    groups = groups_of(folder, step)
    if groups.is_empty() and step is not None:
        st.info(f"Step {step} is not in the log of this run. These are the newest rollouts.")
        groups = groups_of(folder)
    if groups.is_empty():
        st.info(
            "The rollouts of this run are not in its folder; those in the lake are on the screen "
            "Trajectories."
            if (folder / "done.json").is_file()
            else "No rollout is logged yet: the first come with the first checkpoint."
        )
        return
    right = {row["group"]: row for row in groups.iter_rows(named=True)}
    numbers = list(right)
    chosen: int = group if group is not None and group in right else numbers[-1]
    st.session_state[control["key"]] = chosen
    at = int(groups["step"][0])
    st.selectbox(
        f"Group of step {at}",
        numbers,
        format_func=lambda number: (
            f"group {number}: {right[number]['right']} of {right[number]['size']} right"
        ),
        width=320,
        **control,
    )
    if found := group_of(folder, at, chosen):
        _show(found)


def _show(group: Group) -> None:
    asked, gold = st.columns([3, 1])
    with asked.container(gap="xsmall"):
        st.caption("Question")
        st.code(group.text or f"not found: {group.question}", language=None, wrap_lines=True)
    with gold.container(gap="xsmall"):
        st.caption("Gold answer")
        st.code("unknown" if group.gold is None else group.gold, language=None, wrap_lines=True)
    rows = group.rows.to_dicts()
    for start in range(0, len(rows), A_ROW):
        part = rows[start : start + A_ROW]
        for column, row in zip(st.columns(A_ROW), part, strict=False):
            with column.container(gap="xsmall"):
                st.caption(heading(row))
                text = row["response"] or ""
                tall = len(text) > LONG or text.count("\n") > MOST_LINES
                st.code(text, language=None, wrap_lines=True, height=BOX if tall else "content")
