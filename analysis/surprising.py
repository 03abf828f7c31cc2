"""The tokens of one trajectory that surprise most, of a frame of `analysis.tokens.read_tokens`."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

Surprise = Literal["improbable", "entropy", "ratio"]

AROUND = 6  # tokens of context on each side

# What each ranks by, in nat. Nothing is estimated: all three are logged for each token.
RANKS: dict[Surprise, pl.Expr] = {
    "improbable": -pl.col("behaviour_logprob"),
    "entropy": pl.col("entropy"),
    "ratio": (pl.col("logprob") - pl.col("behaviour_logprob")).abs(),
}


def most_surprising(tokens: pl.DataFrame, by: Surprise, top: int) -> pl.DataFrame:
    """The `top` tokens by -log p when sampled, by entropy, or by |log ratio|, greatest first.

    Columns: position, before, text, after (the texts of up to `AROUND` tokens on each side), and
    value [nat]. Tokens whose value was not logged are left out; ties keep their order in the text.
    """
    texts = [text or "" for text in tokens["text"]]
    ranked = (
        tokens.select("position", "text", value=RANKS[by])
        .filter(pl.col("value").is_finite())
        .sort("value", descending=True, maintain_order=True)
        .head(top)
    )
    places = ranked["position"].to_list()
    before = ["".join(texts[max(0, place - AROUND) : place]) for place in places]
    after = ["".join(texts[place + 1 : place + 1 + AROUND]) for place in places]
    return ranked.select(
        "position",
        pl.Series("before", before, dtype=pl.String),
        "text",
        pl.Series("after", after, dtype=pl.String),
        "value",
    )


@dataclass(frozen=True)
class Spread:
    """Of a number of each token: the least and the greatest, and the places that stand out."""

    least: float
    greatest: float
    farthest: frozenset[int]


def spread(values: pl.Series, middle: float, nearest: float, top: int = 5) -> Spread | None:
    """The spread of the values that are there; None where none is.

    `farthest` holds at most the `top` places with the greatest distance from `middle`: those that
    are at least `nearest` away, and 1 % farther than the greatest that is left out, so that of many
    equal ones none stands out.
    """
    known = values.cast(pl.Float64).fill_nan(None)
    there = known.drop_nulls().to_list()
    if not there:
        return None
    away = pl.DataFrame({"away": (known - middle).abs()}).with_row_index("place").drop_nulls()
    ranked = away.sort("away", descending=True)
    left_out = ranked["away"][top] if ranked.height > top else 0.0
    out = (pl.col("away") >= nearest) & (pl.col("away") > left_out * 1.01)
    return Spread(min(there), max(there), frozenset(ranked.head(top).filter(out)["place"]))
