"""A response with its maths typeset and all else as plain text."""

import html

import streamlit as st

from analysis.latex_parts import Part, latex_parts

MOST = 60  # pieces of maths: each is an element of the page

STYLE = """<style>
.prose {font-family: var(--st-code-font, monospace); font-size: 0.82rem; line-height: 1.6;
  white-space: pre-wrap; overflow-wrap: anywhere;}
</style>"""


def show_latex(text: str) -> None:
    """Only what `latex_parts` finds is typeset; KaTeX shows what it cannot read as it is."""
    parts = latex_parts(text)
    found = sum(part.maths is not None for part in parts)
    st.caption(_said(found))
    st.html(STYLE)
    for line in lines_of(first_maths(parts, MOST)):
        if all(part.maths is None for part in line):
            _show_prose("".join(part.raw for part in line))
            continue
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            for part in line:
                if part.maths is None:
                    _show_prose(part.raw)
                else:
                    st.latex(part.maths, width="content")


def _said(found: int) -> str:
    if not found:
        return "No maths found: all of it is text."
    rest = f" The first {MOST} are typeset, the rest stays text." if found > MOST else ""
    return f"{found} piece{'' if found == 1 else 's'} of maths.{rest}"


def _show_prose(text: str) -> None:
    if text.strip():
        st.html(f'<div class="prose">{html.escape(text)}</div>', width="content")


def first_maths(parts: list[Part], most: int) -> list[Part]:
    """The parts with at most so many pieces of maths; the others as text."""
    kept, left = [], most
    for part in parts:
        kept.append(part if left else Part(part.raw))
        left -= part.maths is not None and left > 0
    return kept


def lines_of(parts: list[Part]) -> list[list[Part]]:
    """The parts cut at line ends, so that maths stands in its line; lines of text run together.

    All raw parts joined, with a line end after each line but the last, are the response again.
    """
    lines: list[list[Part]] = [[]]
    for part in parts:
        first, *others = [part.raw] if part.maths is not None else part.raw.split("\n")
        lines[-1].append(Part(first, part.maths))
        lines += [[Part(other)] for other in others]
    joined: list[list[Part]] = []
    for line in lines:
        text = all(part.maths is None for part in line)
        if text and joined and all(part.maths is None for part in joined[-1]):
            joined[-1] += [Part("\n"), *line]
        else:
            joined.append(line)
    return joined
