"""A text of a model as it is, letter by letter, with the hits of the search marked."""

import html
from collections.abc import Sequence

import streamlit as st

from analysis.highlight import MOST, Span, hits
from app import data

STYLE = """<style>
.marked {font-family: var(--st-code-font, monospace); font-size: 0.82rem; line-height: 1.6;
  white-space: pre-wrap; overflow-wrap: anywhere; padding: 1rem; border-radius: 4px;
  background: rgba(128,128,128,0.1);}
.marked mark {background: #f0e442; color: #1d2733; border-radius: 2px; padding: 1px 0;}
</style>"""


def show_text(text: str, wanted: str | None = None, regex: bool = False) -> None:
    """The text with a button that copies it; its hits marked and counted where there is a search.

    `wanted` and `regex` mean what they mean in `analysis.browse.Filters`.
    """
    spans = data.ask_catalog(hits, text, wanted, regex) if wanted else ()
    if not spans:
        st.code(text, language=None, wrap_lines=True)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        number = f"first {MOST:,}" if len(spans) == MOST else f"{len(spans):,}"
        st.caption(f"{number} hit{'' if len(spans) == 1 else 's'} of the search")
        with st.popover("Copy", icon=":material/content_copy:"):
            st.code(text, language=None, wrap_lines=True, height=240)
    st.html(STYLE + f'<div class="marked">{marked_html(text, spans)}</div>')


def marked_html(text: str, spans: Sequence[Span]) -> str:
    """The escaped text with `<mark>` around each span; the spans in order, without overlap."""
    pieces, done = [], 0
    for start, end in spans:
        pieces += [html.escape(text[done:start]), f"<mark>{html.escape(text[start:end])}</mark>"]
        done = end
    return "".join(pieces) + html.escape(text[done:])
