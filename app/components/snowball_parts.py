"""The detector's verdict on a marker and the parts that it rests on, as text and as a table."""

from collections.abc import Sequence

import polars as pl
import streamlit as st

from analysis.snowball import Snowball
from analysis.snowball.parts import Part, numbers
from app.components.plain import plain
from app.components.verdict_card import COLOURS

EXPLAINED = """
A snowball is a feedback: replaying a marked right answer makes later right answers marked, these
are stored and replayed in turn, and the marked share rises ever more. That marked answers and
uncertain ones go together is no snowball, only a correlation at one time.

It would count as one if all of this held:

- **Arms contrast.** The marked share rises faster in the arm that replays uncertain answers than in
  those that replay certain ones, or none. We assigned the arms, so the difference is their doing.
- **Event study.** After a question's first replay, its answers turn marked more often if the
  replayed one was marked than if a like one was not.
- **Dose-response.** Each further marked replay adds to it.
- **Placebo.** At the visit of the replay itself nothing shows: those answers were sampled before it
  was trained on.

What else could look like one, and is held fixed: difficulty (slopes inside questions, replays in
one bucket), drift of the whole run (one run, one window of steps), survivorship (only right answers
are stored, so replays are compared at an equal marked share before), and earlier replays (first
ones only). Answers before the replay are no fair placebo: the replay was chosen among them.
"""


def explain() -> None:
    with st.expander("What would count as a snowball, and what would only look like one"):
        st.markdown(EXPLAINED)


def verdict_of(snowball: Snowball, marker: str) -> None:
    """The verdict of the detector alone, where no card of the ledger speaks of this marker."""
    with st.container(border=True, gap="xsmall"):
        colour = COLOURS[snowball.verdict]
        st.markdown(f":{colour}-badge[{snowball.verdict}]  **Does replay spread {marker}?**")
        st.markdown(plain(snowball.reading))
        if snowball.power is not None:
            st.markdown(f"Power to find a strong snowball: at least {snowball.power:.0%}.")


def parts_table(snowball: Snowball) -> None:
    """A row a part: estimate with interval, p, power, and of how many seeds and questions."""
    there = [part for part in snowball.parts if part.value is not None]
    if there:
        rows = pl.DataFrame([_row(part) for part in there])
        st.dataframe(rows, hide_index=True, placeholder="")
    for part in snowball.parts:
        if part.value is None:
            st.caption(plain(part.sentence))
    in_words([part.sentence for part in there] + list(snowball.notes))


def in_words(lines: Sequence[str]) -> None:
    with st.expander("In words"):
        st.markdown("\n".join(f"- {plain(line)}" for line in lines))


def _row(part: Part) -> dict[str, object]:
    return {
        "part": part.name,
        "estimate [interval]": numbers(part),
        "level": f"{part.level:.1%}",
        "p": f"{part.p:.2g}",
        "power": "" if part.power is None else f"{part.power:.0%}",
        "seeds": part.seeds,
        "questions": part.questions,
    }
