"""What the compare screen shows, as its address holds it, and the choices within it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import polars as pl

from analysis.arms import BASE, METHOD, REFERENCE, arm_order
from analysis.pairs import FLIPS, Side

FlipChoice = Literal["all", "right_wrong", "wrong_right", "right_right", "wrong_wrong"]
View = Literal["sides", "unified", "entropy", "ratio"]
TOKEN_VIEWS = ("entropy", "ratio")


@dataclass(frozen=True)
class Compare:
    """Side A is `left`, side B `right`: arms, or runs of them, or with `a`, `b` two trajectories.

    `left_step`, `right_step`: checkpoints, None the last of each run; `left_from` .. `right_to`:
    windows of training steps. `left_sample`, `right_sample`: ids of responses to `question`.
    """

    study: str | None = None
    on: Literal["evaluation", "training"] = "evaluation"
    benchmark: str | None = None
    left: str | None = None
    right: str | None = None
    left_run: str | None = None
    right_run: str | None = None
    left_step: int | None = None
    right_step: int | None = None
    left_from: int | None = None
    left_to: int | None = None
    right_from: int | None = None
    right_to: int | None = None
    flip: FlipChoice = "all"
    question: str | None = None
    left_sample: str | None = None
    right_sample: str | None = None
    view: View = "sides"
    a: str | None = None
    b: str | None = None


def chosen_arms(known: list[str], left: str | None, right: str | None) -> tuple[str, str]:
    """The arms of both sides: those named, else the reference against the method, or the like."""
    arms = arm_order(known)
    if left not in arms:
        left = next((arm for arm in (REFERENCE, *arms) if arm in arms and arm != right), arms[0])
    if right not in arms:
        others = [arm for arm in arms if arm not in (left, BASE)] or [*arms[::-1]]
        right = METHOD if METHOD in others else others[0]
    return left, right


def chosen_benchmark(domains: Mapping[str, str | None], named: str | None) -> str:
    """The benchmark that is named, else the first in distribution, else another test.

    domains: `in` or `out` by benchmark, None for validation, which comes last.
    """
    if named is not None and named in domains:
        return named
    order = ("in", "out", None)
    return min(domains, key=lambda name: (order.index(domains[name]), name))


def side(address: Compare, name: Literal["left", "right"], arm: str, training: bool) -> Side:
    """A side as the address has it; what the other mode needs is left out."""
    run = getattr(address, f"{name}_run")
    if training:
        first, last = (getattr(address, f"{name}_{end}") for end in ("from", "to"))
        return Side(arm, run, first=_not_negative(first), last=_not_negative(last))
    return Side(arm, run, step=_not_negative(getattr(address, f"{name}_step")))


def listed(questions: pl.DataFrame, flip: FlipChoice) -> pl.DataFrame:
    """The questions of a flip, or all: what was lost first, and in each flip the greatest change.

    questions: as `analysis.pairs.Comparison` holds them.
    """
    chosen = questions if flip == "all" else questions.filter(pl.col("flip") == flip)
    order = pl.col("flip").replace_strict(dict(zip(FLIPS, range(4), strict=True)))
    return chosen.sort(order, -pl.col("difference").abs(), "question")


def chosen_response(responses: pl.DataFrame, named: str | None, right: bool) -> str:
    """The id of the response that is named, else of the first that is right, or wrong."""
    ids: list[str] = responses["id"].to_list()
    typical: list[str] = responses.filter(pl.col("correct") == right)["id"].to_list()
    return named if named in ids and named is not None else [*typical, *ids][0]


def _not_negative(step: int | None) -> int | None:
    return None if step is None or step < 0 else step
