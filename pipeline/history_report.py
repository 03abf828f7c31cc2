"""A recorded run through the replay buffer: how full it gets, who retires, what is drawn.

Visit e of a question belongs to epoch e. Each step draws its questions from the buffer, under every
convention, and then takes in the next fresh questions of the epoch, in the file's order. What a
drawn question would have come to is not recorded, so a draw changes nothing. All settings are the
defaults; replay is on from the first step.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import fmean

import numpy as np

from exgrpo.experience import ReplayBuffer, Trajectory
from exgrpo.seeds import numpy_generator
from exgrpo.selection import bucket_weights, draw_questions
from exgrpo.settings import Batch, Buffer, Experience

CONVENTIONS = {
    "gaussian, counts": Experience(draw="gaussian", sigma_unit="count"),
    "gaussian, accuracy": Experience(draw="gaussian", sigma_unit="accuracy"),
    "uniform": Experience(draw="uniform"),
    "questions": Experience(draw="questions"),
}
DRAWN = int(Experience().share * Batch().questions)  # questions a step out of the buffer
FRESH = Batch().questions - DRAWN
LAGS = ((1, 1), (2, 5), (6, 10), (11, 20), (21, None))  # visits since the first solved one

History = dict[str, list[int]]  # question -> right rollouts of K, visit after visit


@dataclass(frozen=True)
class Occupancy:
    """The buffer after an epoch. outside: neither in the buffer nor retired. stale: in a bucket
    though their latest visit had no success, since such a visit changes nothing."""

    epoch: int
    visited: int
    accuracy: float
    outside: int
    buckets: list[int]
    stale: int
    retired: int
    trajectories: int


@dataclass(frozen=True)
class Later:
    """Visits after a question's first solved one. lag: how many visits after; None: no end.

    unsolved: share below K of K; failed: share at 0 of K; accuracy: mean. None without a visit.
    """

    lag: tuple[int, int | None]
    visits: int
    unsolved: float | None
    failed: float | None
    accuracy: float | None


@dataclass(frozen=True)
class Forgetting:
    """solved: questions with a solved visit. kept: of those visited again, never below K of K."""

    solved: int
    visited_again: int
    kept: int
    later: Later
    by_lag: list[Later]


@dataclass(frozen=True)
class Draws:
    """What a convention draws. half: the fewest questions that take half of all draws."""

    convention: str
    draws: int
    bucket_shares: list[float]
    distinct: int
    half: int
    most_drawn: str | None
    most: int


@dataclass(frozen=True)
class Report:
    file: str
    group_size: int
    questions: int
    visits: int
    occupancy: list[Occupancy]
    forgetting: Forgetting
    draws: list[Draws]


def report_on(name: str, history: History, group_size: int) -> Report:
    occupancy, draws = drive(history, group_size)
    visits = sum(map(len, history.values()))
    forgotten = forgetting(history, group_size)
    return Report(name, group_size, len(history), visits, occupancy, forgotten, draws)


def drive(history: History, group_size: int) -> tuple[list[Occupancy], list[Draws]]:
    """The real buffer through all visits: how full it is after each epoch, and every draw."""
    buffer = ReplayBuffer(Buffer())
    weights = {name: bucket_weights(group_size, each) for name, each in CONVENTIONS.items()}
    drawn: dict[str, Counter[tuple[int, str]]] = {name: Counter() for name in CONVENTIONS}
    occupancy, step = [], 0
    for epoch in range(1, max(map(len, history.values())) + 1):
        visited = [question for question, visits in history.items() if len(visits) >= epoch]
        for start in range(0, len(visited), FRESH):
            step += 1
            for name, counts in drawn.items():
                rng = numpy_generator(0, f"draw, {name}", step)
                draws = draw_questions(buffer.buckets, DRAWN, weights[name], rng)
                counts.update((each.bucket, each.question) for each in draws)
            for question in visited[start : start + FRESH]:
                k = history[question][epoch - 1]
                found = _trajectories(question, epoch, k)
                buffer.observe(question, k, group_size, group_size, found)
        occupancy.append(_occupancy(buffer, history, epoch, group_size))
    return occupancy, [_draws(name, counts, group_size) for name, counts in drawn.items()]


def _trajectories(question: str, epoch: int, count: int) -> list[Trajectory]:
    """The right rollouts of a visit. Their tokens are not recorded; no two are taken as equal."""
    names = [f"{question}:{epoch}:{place}" for place in range(count)]
    ids, logprobs = np.empty(0, np.int32), np.empty(0, np.float32)
    return [
        Trajectory(name, question, [], ids, logprobs, epoch, np.nan, correct=True, key=name)
        for name in names
    ]


def _occupancy(buffer: ReplayBuffer, history: History, epoch: int, group_size: int) -> Occupancy:
    visits = [counts[epoch - 1] for counts in history.values() if len(counts) >= epoch]
    latest = [history[question][:epoch][-1] for question in buffer.buckets.places]
    return Occupancy(
        epoch=epoch,
        visited=len(visits),
        accuracy=fmean(visits) / group_size,
        outside=len(history) - len(buffer.buckets) - len(buffer.retired),
        buckets=buffer.bucket_sizes(group_size),
        stale=latest.count(0),
        retired=len(buffer.retired),
        trajectories=len(buffer.born),
    )


def _draws(name: str, counts: Counter[tuple[int, str]], group_size: int) -> Draws:
    buckets, questions = Counter[int](), Counter[str]()
    for (bucket, question), count in counts.items():
        buckets[bucket] += count
        questions[question] += count
    total = questions.total()
    ordered = questions.most_common()
    sums = accumulate(count for _, count in ordered)
    return Draws(
        convention=name,
        draws=total,
        bucket_shares=[buckets[k] / total if total else 0.0 for k in range(1, group_size)],
        distinct=len(questions),
        half=sum(1 for reached in sums if 2 * reached < total) + (total > 0),
        most_drawn=ordered[0][0] if ordered else None,
        most=ordered[0][1] if ordered else 0,
    )


def forgetting(history: History, group_size: int) -> Forgetting:
    """What became of questions that retirement takes out: the visits after the first K of K."""
    after = [
        visits[visits.index(group_size) + 1 :]
        for visits in history.values()
        if group_size in visits
    ]
    again = [visits for visits in after if visits]
    lags = ((first, last, [visits[first - 1 : last] for visits in again]) for first, last in LAGS)
    return Forgetting(
        solved=len(after),
        visited_again=len(again),
        kept=sum(min(visits) == group_size for visits in again),
        later=_later((1, None), again, group_size),
        by_lag=[_later((first, last), parts, group_size) for first, last, parts in lags],
    )


def _later(lag: tuple[int, int | None], parts: Iterable[Sequence[int]], group_size: int) -> Later:
    counts = [count for part in parts for count in part]
    if not counts:
        return Later(lag, 0, None, None, None)
    return Later(
        lag,
        len(counts),
        unsolved=fmean(count < group_size for count in counts),
        failed=fmean(count == 0 for count in counts),
        accuracy=fmean(counts) / group_size,
    )
