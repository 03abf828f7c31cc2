"""The tokens of a response, coloured by a number of each token, with the rest on hover or focus.

Model output is hostile: every token is escaped, and a style holds only numbers that we made. What a
colour says is also in the tip, and the tokens farthest out are underlined.
"""

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from analysis.surprising import Spread, spread

Token = Mapping[str, Any]

STYLE = """<style>
.tokens {font-family: var(--st-code-font, monospace); font-size: 0.85rem; line-height: 1.75;
  white-space: pre-wrap; overflow-wrap: anywhere;}
.tokens span {position: relative; border-radius: 2px; padding: 2px 0; margin-right: 1px;}
.tokens .above {border-bottom: 2px solid currentColor;}
.tokens .below {border-bottom: 2px dashed currentColor;}
.tokens .chosen {outline: 2px solid currentColor;}
.tokens span:hover, .tokens span:focus {outline: 1px solid currentColor;}
.tokens span:hover::after, .tokens span:focus::after {content: attr(data-tip); position: absolute;
  left: 0; top: 1.9em; z-index: 9; white-space: pre; font-size: 0.75rem; line-height: 1.4;
  padding: 6px 9px; border-radius: 4px; background: #22282e; color: #f4f5f3;
  pointer-events: none;}
@media (max-width: 640px) {
  .tokens span:hover::after, .tokens span:focus::after {position: fixed; left: 8px; top: auto;
    bottom: 8px;}
}
.tokens i {font-style: normal; opacity: 0.45;}
.legend {font-size: 0.78rem; line-height: 1.5; opacity: 0.85; margin-bottom: 6px;}
.legend span {white-space: nowrap;}
.legend b {margin: 0 6px; display: inline-block; width: 120px; height: 10px; border-radius: 2px;}
</style>"""

# Vermilion and blue of Okabe and Ito; their strength, not their hue, says how far.
AMBER, ABOVE, BELOW = "226,122,20", "213,94,0", "0,114,178"


@dataclass(frozen=True)
class Scale:
    """A colour scale: the number it shows (of a frame of tokens), its unit, its middle and reach.

    There is no colour at `middle`. The ends are fixed, so that two trajectories can be compared:
    `middle` + `reach` is the fullest, and `middle` - `reach` as well if `signed`.
    """

    name: str
    title: str
    unit: str
    value: pl.Expr
    reach: float
    signed: bool
    middle: float = 0.0


def log_ratio(token: Token) -> float | None:
    """Log-probability in the update minus the one when sampled; None where not logged."""
    now, then = token["logprob"], token["behaviour_logprob"]
    return None if now is None or then is None else now - then


def _column(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Float64)


SCALES = {
    "entropy": Scale(
        "entropy", "entropy of the policy", "nat", _column("entropy"), 1.5, signed=False
    ),
    "ratio": Scale(
        "log-ratio",
        "log(policy / behaviour policy)",
        "nat",
        _column("logprob") - _column("behaviour_logprob"),
        0.5,
        signed=True,
    ),
    "weight": Scale(
        "weight",
        "weight, the factor of the advantage",
        "",
        _column("weight"),
        1.0,
        signed=True,
        middle=1.0,
    ),
    "advantage": Scale(
        "advantage",
        "advantage × weight: up or down, and how hard",
        "",
        _column("push"),
        1.0,
        signed=True,
    ),
}


def tokens_html(
    tokens: pl.DataFrame, scale: Scale, first: int = 0, most: int = 2**31, chosen: int | None = None
) -> str:
    """The legend, and at most `most` coloured tokens from the position `first` on.

    `tokens`: all of a trajectory, as `analysis.token_weights.weigh` gives them, or as `read_tokens`
    does, which has no weights; `chosen`: the position of the token to mark.
    """
    tokens = tokens.with_columns(value=scale.value)
    found = spread(tokens["value"], scale.middle, scale.reach / 20)
    far = found.farthest if found else frozenset()
    spans = "".join(
        _span(token, scale, place in far, place == chosen)
        for place, token in enumerate(tokens.slice(first, most).iter_rows(named=True), first)
    )
    return f'{STYLE}{_legend(scale, found)}<div class="tokens">{spans}</div>'


def _span(token: Token, scale: Scale, far: bool, chosen: bool) -> str:
    value = token["value"]
    text = html.escape("�" if token["text"] is None else token["text"])
    text = text.replace("\n", "<i>⏎</i>\n") or "<i>∅</i>"
    side = "above" if value is not None and value >= scale.middle else "below"
    classes = " ".join([side] * far + ["chosen"] * chosen)
    # The tab key stops at what stands out; a click or a tap reaches every token.
    stop = 0 if far or chosen else -1
    return (
        f'<span class="{classes}" tabindex="{stop}" style="background:{_colour(value, scale)}" '
        f'data-tip="{html.escape(_tip(token))}">{text}</span>'
    )


def _colour(value: float | None, scale: Scale) -> str:
    if value is None or math.isnan(value):
        return "transparent"
    away = value - scale.middle
    strength = min(abs(away) / scale.reach, 1.0) * 0.8
    hue = AMBER if not scale.signed else ABOVE if away > 0 else BELOW
    return f"rgba({hue},{strength:.3f})"


def _tip(token: Token) -> str:
    ratio = log_ratio(token)
    lines = [
        f"token {token['position']}, id {token['token_id']}",
        f"entropy        {_number(token['entropy'])} nat",
        f"log-prob now   {_number(token['logprob'])} nat",
        f"when sampled   {_number(token['behaviour_logprob'])} nat",
        f"log-ratio      {_number(ratio)} nat",
        f"ratio          {_number(None if ratio is None else _exp(ratio))}",
    ]
    if token.get("weight") is not None:
        clipped = ", clipped: no gradient" if token["clipped"] else ""
        lines += [
            f"weight         {_number(token['weight'])}{clipped}",
            f"adv. × weight  {_number(token['push'])}",
        ]
    return "\n".join(lines)


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _number(value: float | None) -> str:
    if value is None:
        return "not logged"
    return f"{value:.4f}" if abs(value) < 1e6 else f"{value:.4g}"


def _legend(scale: Scale, found: Spread | None) -> str:
    low = scale.middle - scale.reach if scale.signed else scale.middle
    left, right = f"{low:g}".replace("-", "−"), f"{scale.middle + scale.reach:g}"
    if scale.signed:
        colours = f"rgba({BELOW},0.8),rgba({BELOW},0) 50%,rgba({ABOVE},0) 50%,rgba({ABOVE},0.8)"
        facts = [f"no colour at {scale.middle:g}"]
    else:
        colours = f"rgba({AMBER},0),rgba({AMBER},0.8)"
        facts = []
    if found is not None:
        facts.append(f"here from {found.least:.4g} to {found.greatest:.4g}")
        if found.farthest:
            below = ", dashed if below" if scale.signed else ""
            facts.append(f"underlined: the {len(found.farthest)} farthest{below}")
    facts.append("hover, tap or focus a token for its numbers")
    return (
        f'<div class="legend">{scale.title} <span>{left}'
        f'<b style="background:linear-gradient(to right,{colours})"></b>'
        f"{right} {scale.unit} and beyond</span><br>{' · '.join(facts)}</div>"
    )
