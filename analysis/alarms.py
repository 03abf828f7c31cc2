"""Alarms: what the rows of table `steps` say has gone wrong with a training, each in a sentence.

Every function takes the steps of one run, sorted by step, and gives an alarm or None; `snowball`
takes counts of marks. One is about the whole log (a loss that is no number), the others about now:
a run that has recovered is quiet.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist

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
# A model that does not know the form earns nothing from the first step on: three batches tell.
STEPS_WITHOUT_ANSWERS = 3
UNANSWERED = 0.95  # of the graded rollouts; now and then one hits on the form by chance
# Markers that may spread, as a sentence has them. Shares of 20 steps: 320 replays in a small run.
MARKERS = {
    "flawed": "with a flawed chain",
    "shortcut": "without steps",
    "code": "with code",
    "repetition": "with repetition",
}
MARK_STEPS = 20
# Of each of the two intervals, which must both be left. Looked at after every step, with constant
# shares, a marker raises a false alarm in 1 to 2 % of trainings of 150 steps: tests/test_alarms.py.
MARK_LEVEL = 0.98

MARKS_SCHEMA = {
    "marker": pl.String,
    "step": pl.Int64,
    "right": pl.Int64,  # right fresh answers whose marker is known
    "right_marked": pl.Int64,
    "replayed": pl.Int64,  # replayed trajectories whose marker is known
    "replayed_marked": pl.Int64,
}


@dataclass(frozen=True)
class Alarm:
    """What went wrong: its name, the step at which it was seen, and one sentence about it."""

    name: str
    step: int
    sentence: str


def alarms(
    steps: pl.DataFrame, vocabulary: int | None = None, marks: pl.DataFrame | None = None
) -> tuple[Alarm, ...]:
    """Every alarm that the steps give. vocabulary: number of tokens, where it is known.

    marks: how many answers were marked, a row a marker and step (MARKS_SCHEMA), where it is known.
    """
    found = [
        not_finite(steps),
        skipped(steps),
        collapse(steps),
        entropy_explosion(steps, vocabulary),
        no_signal(steps),
        no_answers(steps),
    ]
    if marks is not None:
        found += [snowball(marks, marker) for marker in MARKERS]
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


def no_answers(steps: pl.DataFrame) -> Alarm | None:
    """Nearly all graded rollouts without an answer in the form asked for, in the newest steps.

    Quiet where the log does not say, as one of an import or of an older version.
    """
    # The number of rollouts is no column of its own: tokens over the mean length.
    graded = (pl.col("sampled_tokens") / pl.col("length")).round() - pl.col("ungraded")
    few = (graded > 0) & (pl.col("unanswered") >= UNANSWERED * graded)
    length = _run_at_the_end(steps.select(few).to_series())
    if length < STEPS_WITHOUT_ANSWERS:
        return None
    last = _last(steps)
    unanswered, of = steps.tail(length).select(pl.col("unanswered").sum(), graded.sum()).row(0)
    return Alarm(
        "no answers",
        last,
        f"In the last {length} steps, to step {last}, {unanswered} of {of:.0f} graded rollouts "
        f"had no answer in the form asked for, so they earned nothing whatever they said: check "
        f"the think tags, the box and the instruction that asks for them, and max_new_tokens, "
        f"which may cut answers off.",
    )


def snowball(marks: pl.DataFrame, marker: str) -> Alarm | None:
    """The marked share has risen among replayed and among right fresh answers, beyond chance.

    Of the newest MARK_STEPS steps against the first that replayed. It warns and judges nothing:
    shares also rise where a policy turns to harder questions. `analysis.snowball` judges.
    """
    rows = marks.filter(pl.col("marker") == marker)
    start = rows.filter(pl.col("replayed") > 0)["step"].min()
    last = rows["step"].max()
    if not isinstance(start, int) or not isinstance(last, int):
        return None
    if last - start + 1 < 2 * MARK_STEPS:
        return None
    first, newest = (
        rows.filter(pl.col("step").is_between(end - MARK_STEPS + 1, end)).sum()
        for end in (start + MARK_STEPS - 1, last)
    )
    told = []
    for count, name in (("replayed", "replayed"), ("right", "right fresh")):
        before, now = ((row[f"{count}_marked"][0], row[count][0]) for row in (first, newest))
        if not has_risen(before, now):
            return None
        shares = [100 * marked / known for marked, known in (before, now)]
        told.append(f"among {name} answers from {shares[0]:.0f} to {shares[1]:.0f} %")
    return Alarm(
        "snowball",
        last,
        f"The share {MARKERS[marker]} has risen {' and '.join(told)}, of the {MARK_STEPS} steps "
        f"from step {start} to those to step {last}, both beyond chance: it may snowball.",
    )


def has_risen(before: tuple[int, int], now: tuple[int, int]) -> bool:
    """Whether a share (count, of how many) has risen beyond its interval at MARK_LEVEL.

    The interval of the difference is Newcombe's (1998, method 10), from two Wilson intervals.
    """
    if not before[1] or not now[1]:
        return False
    (share, _, high), (share_now, low_now, _) = wilson(*before), wilson(*now)
    return share_now - share > math.hypot(share_now - low_now, high - share)


def wilson(count: int, known: int) -> tuple[float, float, float]:
    """A share and its Wilson interval at MARK_LEVEL; known > 0."""
    z = NormalDist().inv_cdf((1 + MARK_LEVEL) / 2)
    share = count / known
    middle = (share + z**2 / (2 * known)) / (1 + z**2 / known)
    half = z / (1 + z**2 / known) * math.sqrt(share * (1 - share) / known + z**2 / (4 * known**2))
    return share, middle - half, middle + half


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
