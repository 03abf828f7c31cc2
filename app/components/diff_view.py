"""Two responses against each other: their texts, or their tokens one above the other.

Model output is hostile: every piece is escaped, and a style holds only numbers that we made. What
only A has is struck through, what only B has is underlined: colour alone tells nothing.
"""

import html
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import polars as pl

from analysis.text_diff import Diff, diff, words
from app.components.token_view import ABOVE, AMBER, BELOW, Scale

Token = Mapping[str, Any]

LONGEST = 40_000  # characters of a text that are compared
MOST_TOKENS = 1500  # tokens of a response that are drawn: more make the page slow

STYLE = """<style>
.diff {font-family: var(--st-code-font, monospace); font-size: 0.85rem; line-height: 1.65;
  white-space: pre-wrap; overflow-wrap: anywhere;}
.diff del, .diff ins {border-radius: 2px; text-decoration-thickness: 2px;}
.diff del {background: rgba(213,94,0,0.2); text-decoration: line-through rgb(213,94,0) 2px;}
.diff ins {background: rgba(0,114,178,0.2); text-decoration: underline rgb(0,114,178) 2px;}
.diff.sides {display: grid; grid-template-columns: minmax(0,1fr) minmax(0,1fr); gap: 0 18px;}
.diff.sides > div {border-top: 1px solid rgba(128,128,128,0.25); padding: 1px 6px;}
.diff.sides > .a {border-left: 3px solid rgb(213,94,0);}
.diff.sides > .b {border-left: 3px solid rgb(0,114,178);}
@media (max-width: 640px) {.diff.sides {grid-template-columns: minmax(0,1fr);}}
.diff i {font-style: normal; opacity: 0.5;}
.diff .pair {display: inline-flex; flex-direction: column; vertical-align: top;
  white-space: pre; line-height: 1.35; margin: 0 1px 9px 0;}
.diff .pair > * {border-radius: 2px; padding: 1px 0; min-height: 1.4em;}
.diff .pair > :hover {outline: 1px solid currentColor;}
.diff-legend {display: flex; flex-wrap: wrap; align-items: center; gap: 4px 10px;
  font-size: 0.8rem; margin-bottom: 6px;}
.diff-legend b {display: inline-block; width: 110px; height: 10px; border-radius: 2px;}
</style>"""

FULL = 0.8  # how opaque a colour is at the end of its scale


def text_diff_html(left: str, right: str, unified: bool) -> str:
    """The texts of A and B, side by side with their common lines level, or as one text."""
    ours, theirs = words(left[:LONGEST]), words(right[:LONGEST])
    found = diff(ours, theirs)
    notes = []
    if max(len(left), len(right)) > LONGEST:
        notes.append(f"Only the first {LONGEST:,} characters of each are compared.")
    if not found.whole:
        notes.append("Much differs: where whole lines do, the words in them are not compared.")
    if unified:
        body = f'<div class="diff">{"".join(_unified(found, ours, theirs))}</div>'
    else:
        rows = "".join(
            f'<div class="a">{a}</div><div class="b">{b}</div>'
            for a, b in _rows(found, ours, theirs)
        )
        body = f'<div class="diff sides">{rows}</div>'
    return STYLE + _legend("", notes) + body


def token_diff_html(left: pl.DataFrame, right: pl.DataFrame, scale: Scale) -> str:
    """The tokens of A above those of B, coloured by one number on one scale.

    left, right: frames of `analysis.tokens.read_tokens`. Equal tokens stand in one column; where
    the responses differ, tokens share columns in their order.
    """
    notes = []
    if max(left.height, right.height) > MOST_TOKENS:
        notes.append(f"Only the first {MOST_TOKENS:,} tokens of each are compared.")
    ours, theirs = (
        list(side.head(MOST_TOKENS).with_columns(value=scale.value).iter_rows(named=True))
        for side in (left, right)
    )
    found = diff([_piece(token) for token in ours], [_piece(token) for token in theirs])
    if not found.whole:
        notes.append("Much differs: where whole lines do, the tokens in them are not compared.")
    columns = "".join(
        _column(a, b, block.equal, scale)
        for block in found.blocks
        for a, b in zip_longest(ours[slice(*block.left)], theirs[slice(*block.right)])
    )
    return f'{STYLE}{_legend(_colours(scale), notes)}<div class="diff">{columns}</div>'


def _unified(found: Diff, left: Sequence[str], right: Sequence[str]) -> Iterator[str]:
    for block in found.blocks:
        a, b = left[slice(*block.left)], right[slice(*block.right)]
        yield html.escape("".join(a)) if block.equal else _marked("del", a) + _marked("ins", b)


def _rows(found: Diff, left: Sequence[str], right: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The two texts in rows, each of which ends with a line break that both have."""
    a = b = ""
    for block in found.blocks:
        if not block.equal:
            a += _marked("del", left[slice(*block.left)])
            b += _marked("ins", right[slice(*block.right)])
            continue
        for piece in left[slice(*block.left)]:
            a, b = a + html.escape(piece), b + html.escape(piece)
            if "\n" in piece:
                yield a, b
                a = b = ""
    if a or b:
        yield a, b


def _marked(tag: str, pieces: Sequence[str]) -> str:
    text = html.escape("".join(pieces)).replace("\n", "⏎\n")
    return f"<{tag}>{text}</{tag}>" if text else ""


def _piece(token: Token) -> str:
    return f"\0{token['token_id']}" if token["text"] is None else token["text"]


def _column(a: Token | None, b: Token | None, equal: bool, scale: Scale) -> str:
    tags = ("span", "span") if equal else ("del", "ins")
    cells = "".join(_cell(token, tag, scale) for token, tag in zip((a, b), tags, strict=True))
    ends = any(token is not None and "\n" in _piece(token) for token in (a, b))
    return f'<span class="pair">{cells}</span>' + ("<br>" if ends else "")


def _cell(token: Token | None, tag: str, scale: Scale) -> str:
    if token is None:
        return "<span> </span>"
    text = html.escape("�" if token["text"] is None else token["text"])
    text = text.replace("\n", "<i>⏎</i>") or "<i>∅</i>"
    value = token["value"]
    number = "not logged" if value is None else f"{value:.4f} {scale.unit}"
    tip = html.escape(f"token {token['position']}: {scale.title} {number}")
    return f'<{tag} style="background:{_colour(value, scale)}" title="{tip}">{text}</{tag}>'


def _colour(value: float | None, scale: Scale) -> str:
    if value is None or math.isnan(value):
        return "transparent"
    away = value - scale.middle
    hue = AMBER if not scale.signed else ABOVE if away > 0 else BELOW
    return f"rgba({hue},{FULL * min(abs(away) / scale.reach, 1.0):.3f})"


def _colours(scale: Scale) -> str:
    low = scale.middle - scale.reach if scale.signed else scale.middle
    stops = [
        f"rgba({BELOW},{FULL})",
        f"rgba({BELOW},0)",
        f"rgba({ABOVE},0)",
        f"rgba({ABOVE},{FULL})",
    ]
    if not scale.signed:
        stops = [f"rgba({AMBER},0)", f"rgba({AMBER},{FULL})"]
    return (
        f"<span>{html.escape(scale.title)}, the same scale for both: {low:g}</span>"
        f'<b style="background:linear-gradient(to right,{",".join(stops)})"></b>'
        f"<span>{scale.middle + scale.reach:g} {html.escape(scale.unit)} and beyond</span>"
        f"<span>upper line A, lower line B</span>"
    )


def _legend(colours: str, notes: Sequence[str]) -> str:
    marks = '<span class="diff"><del>only in A</del> <ins>only in B</ins></span>'
    told = "".join(f"<span>{note}</span>" for note in notes)
    return f'<div class="diff-legend">{colours}{marks}{told}</div>'
