"""The tokens of a response, coloured by a number of each token, with the rest on hover.

Model output is hostile: every token is escaped, and a style holds only numbers that we made.
"""

import html
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

Token = Mapping[str, Any]

STYLE = """<style>
.tokens {font-family: var(--st-code-font, monospace); font-size: 0.85rem; line-height: 1.75;
  white-space: pre-wrap; overflow-wrap: anywhere;}
.tokens span {position: relative; border-radius: 2px; padding: 2px 0;
  margin-right: 1px;}
.tokens span:hover {outline: 1px solid currentColor;}
.tokens span:hover::after {content: attr(data-tip); position: absolute; left: 0; top: 1.9em;
  z-index: 9; white-space: pre; font-size: 0.75rem; line-height: 1.4; padding: 6px 9px;
  border-radius: 4px; background: #22282e; color: #f4f5f3; pointer-events: none;}
.tokens i {font-style: normal; opacity: 0.45;}
.legend {display: flex; flex-wrap: wrap; white-space: nowrap; align-items: center; gap: 8px;
  font-size: 0.78rem; opacity: 0.85; margin-bottom: 4px;}
.legend b {display: inline-block; width: 120px; height: 10px; border-radius: 2px;}
</style>"""

AMBER, RED, BLUE = "226,122,20", "200,62,52", "46,107,176"


@dataclass(frozen=True)
class Scale:
    """A colour scale: the number it shows, in which unit, and where the colour is full."""

    title: str
    unit: str
    value: Callable[[Token], float | None]
    end: float
    signed: bool


def log_ratio(token: Token) -> float | None:
    """Log-probability in the update minus the one when sampled; None where not logged."""
    now, then = token["logprob"], token["behaviour_logprob"]
    return None if now is None or then is None else now - then


SCALES = {
    "entropy": Scale("entropy of the policy", "nat", lambda token: token["entropy"], 1.5, False),
    "ratio": Scale("log(policy / behaviour policy)", "nat", log_ratio, 0.5, True),
}


def tokens_html(tokens: pl.DataFrame, scale: Scale) -> str:
    """The legend and the coloured tokens of a frame of `analysis.tokens.read_tokens`."""
    spans = "".join(_span(token, scale) for token in tokens.iter_rows(named=True))
    return f'{STYLE}{_legend(scale)}<div class="tokens">{spans}</div>'


def _span(token: Token, scale: Scale) -> str:
    text = html.escape("�" if token["text"] is None else token["text"])
    text = text.replace("\n", "<i>⏎</i>\n") or "<i>∅</i>"
    colour = _colour(scale.value(token), scale)
    return f'<span style="background:{colour}" data-tip="{html.escape(_tip(token))}">{text}</span>'


def _colour(value: float | None, scale: Scale) -> str:
    if value is None or math.isnan(value):
        return "transparent"
    strength = min(abs(value) / scale.end, 1.0) * 0.8
    hue = AMBER if not scale.signed else RED if value > 0 else BLUE
    return f"rgba({hue},{strength:.3f})"


def _tip(token: Token) -> str:
    ratio = log_ratio(token)
    return "\n".join(
        [
            f"token {token['position']}, id {token['token_id']}",
            f"entropy        {_number(token['entropy'])} nat",
            f"log-prob now   {_number(token['logprob'])}",
            f"when sampled   {_number(token['behaviour_logprob'])}",
            f"ratio          {_number(None if ratio is None else math.exp(ratio))}",
        ]
    )


def _number(value: float | None) -> str:
    return "not logged" if value is None else f"{value:.4f}"


def _legend(scale: Scale) -> str:
    if scale.signed:
        left, right = f"−{scale.end:g}", f"+{scale.end:g}"
        colours = f"rgba({BLUE},0.8),rgba({BLUE},0),rgba({RED},0),rgba({RED},0.8)"
    else:
        left, right = "0", f"{scale.end:g}"
        colours = f"rgba({AMBER},0),rgba({AMBER},0.8)"
    return (
        f'<div class="legend">{scale.title}: {left}'
        f'<b style="background:linear-gradient(to right,{colours})"></b>'
        f"{right} {scale.unit} and beyond · hover a token</div>"
    )
