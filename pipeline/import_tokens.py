"""What the lists of a response's tokens say about it as a whole."""

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.import_read import Row

Numbers = Sequence[float] | None


def measures(lists: Mapping[str, Any], ratios: Numbers = None) -> Row:
    """Length, means and sums over the tokens of one response; null where a list is missing.

    lists: columns of `tokens`. ratios: policy / behaviour policy, one a token.
    """
    entropies: Numbers = lists.get("entropies")
    squares = sum(ratio**2 for ratio in ratios or ())
    token_ids = lists.get("token_ids")
    return {
        "length": None if token_ids is None else len(token_ids),
        "behaviour_nll": mean(lists.get("behaviour_logprobs"), -1.0),
        "nll": mean(lists.get("logprobs"), -1.0),
        "mean_entropy": mean(entropies),
        "summed_entropy": None if entropies is None else sum(entropies),
        "ratio_mean": mean(ratios),
        "ratio_min": min(ratios) if ratios else None,
        "ratio_max": max(ratios) if ratios else None,
        "ratio_ess": sum(ratios) ** 2 / squares / len(ratios) if ratios and squares else None,
    }


def mean(values: Numbers, factor: float = 1.0) -> float | None:
    return factor * sum(values) / len(values) if values else None
