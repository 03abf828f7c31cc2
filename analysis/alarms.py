"""Alarms: what the rows of table `steps` say has gone wrong with a training, each in a sentence.

Every function takes the steps of one run, sorted by step, and gives an alarm or None. One is about
the whole log (a loss that is no number), the others about now: a run that has recovered is quiet.
"""

import math
from dataclasses import dataclass

import polars as pl

# Steps of the moving mean: one batch of hard questions must not look like a trend.
WINDOW = 10
# A best reward below this is too near nothing for a tenth of it to be told from luck: with 128
# rollouts in a window, a policy that is right once in fifty may show 0.05 and then 0.
LEAST_BEST = 0.1
COLLAPSED = 0.1  # of its best
# Entropy grows severalfold where a policy that was nearly certain starts to explore, which is
# healthy; 2 nat a token is a choice among seven equally likely tokens at every place, which is not.
ENTROPY_TIMES, ENTROPY_NAT = 3.0, 2.0
ENTROPY_SHARE = 0.9  # of log(vocabulary), the most there can be: little is left to explode
# A huge gradient now and then is what the skip is for; this many in a row and nothing is learnt.
SKIPPED_STEPS = 5
# In a small batch all groups may be equal by chance, but not so often in a row.
STEPS_WITHOUT_SIGNAL = 5


@dataclass(frozen=True)
class Alarm:
    """What went wrong: its name, the step at which it was seen, and one sentence about it."""

    name: str
    step: int
    sentence: str


def alarms(steps: pl.DataFrame, vocabulary: int | None = None) -> tuple[Alarm, ...]:
    """Every alarm that the steps give. vocabulary: number of tokens, where it is known."""
    found = (
        not_finite(steps),
        skipped(steps),
        collapse(steps),
        entropy_explosion(steps, vocabulary),
        no_signal(steps),
    )
    return tuple(alarm for alarm in found if alarm is not None)


def not_finite(steps: pl.DataFrame) -> Alarm | None:
    """The first loss or gradient norm that is infinite or no number.

    A missing gradient norm says only that every update was left out.
    """
    for column, name in (("loss", "loss"), ("grad_norm", "gradient norm")):
        wrong = steps.filter(~pl.col(column).is_finite())
        if wrong.height:
            step, value = wrong.select("step", column).row(0)
            return Alarm("not finite", step, f"The {name} of step {step} is {value}.")
    return None


def skipped(steps: pl.DataFrame) -> Alarm | None:
    """Updates left out for a non-finite or huge gradient in each of the newest steps."""
    length = _run_at_the_end(steps["skipped_updates"] > 0)
    if length < SKIPPED_STEPS:
        return None
    updates, last = steps["skipped_updates"].tail(length).sum(), _last(steps)
    return Alarm(
        "skipped updates",
        last,
        f"In each of the last {length} steps, to step {last}, an update was left out for a huge "
        f"or non-finite gradient, {updates} in all.",
    )


def collapse(steps: pl.DataFrame) -> Alarm | None:
    """The smoothed reward is under a tenth of its best, and that best was worth the name."""
    curve = steps.select("step", reward=smoothed("reward")).drop_nulls().filter(_full_windows())
    if curve.is_empty():
        return None
    best_step, best = curve.sort("reward", "step", descending=[True, False]).row(0)
    last, now = curve.row(-1)
    if best < LEAST_BEST or now >= COLLAPSED * best:
        return None
    return Alarm(
        "collapse",
        last,
        f"The reward has collapsed: {now:.3f} over the {WINDOW} steps to step {last}, under a "
        f"tenth of its best, {best:.3f} at step {best_step}.",
    )


def entropy_explosion(steps: pl.DataFrame, vocabulary: int | None = None) -> Alarm | None:
    """The smoothed entropy is severalfold that of the first steps, and high in itself."""
    curve = steps.select("step", entropy=smoothed("entropy")).drop_nulls().filter(_full_windows())
    if curve.is_empty():
        return None
    first = curve["entropy"][0]
    last, now = curve.row(-1)
    limit = max(ENTROPY_TIMES * first, ENTROPY_NAT)
    if vocabulary:
        limit = min(limit, ENTROPY_SHARE * math.log(vocabulary))
    if first >= limit or now < limit:  # a policy that began there has not exploded
        return None
    most = f"; the most there can be is {math.log(vocabulary):.2f}" if vocabulary else ""
    return Alarm(
        "entropy",
        last,
        f"The entropy has exploded: {now:.2f} nat a token over the {WINDOW} steps to step {last}, "
        f"after {first:.2f} over the first {WINDOW}{most}.",
    )


def no_signal(steps: pl.DataFrame) -> Alarm | None:
    """No group with unequal rewards in each of the newest steps."""
    length = _run_at_the_end(steps["signal_groups"] == 0)
    if length < STEPS_WITHOUT_SIGNAL:
        return None
    last = _last(steps)
    reward = steps["reward"].tail(length).mean()
    known = f"; the mean reward was {reward:.3f}" if isinstance(reward, float) else ""
    return Alarm(
        "no signal",
        last,
        f"No group had both right and wrong answers in the last {length} steps, to step {last}, "
        f"so there was nothing to learn from{known}.",
    )


def smoothed(column: str) -> pl.Expr:
    """The mean of a column over the newest WINDOW steps at each step; fewer at the start."""
    known = pl.when(pl.col(column).is_finite()).then(pl.col(column))
    return known.rolling_mean(WINDOW, min_samples=1)


def _full_windows() -> pl.Expr:
    return pl.int_range(1, pl.len() + 1) >= WINDOW


def _run_at_the_end(holds: pl.Series) -> int:
    """How many of the newest rows in a row are true; null counts as false."""
    return int(holds.fill_null(False).reverse().cast(pl.Int64).cum_prod().sum())


def _last(steps: pl.DataFrame) -> int:
    return int(steps["step"][-1])
