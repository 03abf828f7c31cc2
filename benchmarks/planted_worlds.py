"""Worlds in which it is known how strongly replay spreads a marker, for the snowball detector.

A world is a study: arms x seeds, of each the groups of all steps, as the table `visits` has them,
so that the named queries run on it. What a replayed trajectory does is planted: it moves the
chance that a later right answer is marked, by `pull` (logit) for its own question and by `reach`
(logit, shared out over the replays of a step) for all, times (marked - that chance): it is
imitated, so that replays as marked as the answers themselves change nothing on average. Everything
else in here is a confounder, which must not be taken for that.
"""

from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np
import polars as pl
from numpy.typing import NDArray

from analysis.catalog_build import MACROS
from analysis.sql_types import declared
from exgrpo.tables import RUNS, TABLES
from exgrpo.tables.derived import VISITS

Array = NDArray[Any]

K, BATCH, DRAWN = 8, 32, 16  # rollouts a group, groups a step, of them drawn from the buffer
LEVELS = 8
START = 0.35  # replay begins after the first batch with more of it right
KEPT = 48  # stored answers a question; the oldest are overwritten
RATE = -1.2  # logit of the marked share of a middling question at step 0: 23 %

ARMS = ("on_policy", "question_replay", "exgrpo", "no_trajectory_selection", "highest_entropy")
ORDERS = {"exgrpo": 1.0, "highest_entropy": -1.0, "no_trajectory_selection": 0.0}


@dataclass(frozen=True)
class World:
    """pull, reach: strength (0: no snowball). The rest are confounders, in logits of the share.

    drift: what all arms gain by the last step. arm_drift: what the high-entropy arm gains beside.
    difficulty: from one level to the next. questions: deviation of a question. length: of a
    deviation of length, which also lowers the entropy. tell: how many deviations the entropy of a
    marked answer is above. seed_share, seed_drift: deviations of a run at the start, and of its
    gain by the last step.
    """

    pull: float = 0.0
    reach: float = 0.0
    drift: float = 0.4
    arm_drift: float = 0.0
    difficulty: float = 0.15
    questions: float = 0.8
    length: float = 0.4
    tell: float = 0.7
    seed_share: float = 0.2
    seed_drift: float = 0.15
    seeds: int = 5
    steps: int = 150
    pool: int = 600

    def of_strength(self, strength: float) -> "World":
        """The same world with a snowball of this strength; 1 is `strong`, see `STRONG`."""
        return replace(self, pull=strength * STRONG[0], reach=strength * STRONG[1])


# Calibrated so that by the last fifth of the training the marked share in the high-entropy arm is
# 15 points above that without a snowball (weak, a third of it: 5): `benchmarks/snowball.py` says.
STRONG = (0.2, 0.047)


def play(world: World, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The rows of tables `runs` and `visits` of a world. The same seed gives the same rows."""
    rng = np.random.default_rng(seed)
    runs = pl.DataFrame(
        [
            {"run": f"{arm}-s{each}", "study": "planted", "arm": arm, "seed": each}
            for arm in ARMS
            for each in range(world.seeds)
        ]
    )
    state = _State(world, runs["arm"].to_numpy(), rng)
    steps = [state.step(step) for step in range(1, world.steps + 1)]
    return runs, _visits(runs, steps)


def catalog(runs: pl.DataFrame, visits: pl.DataFrame) -> duckdb.DuckDBPyConnection:
    """A catalog in memory that holds these rows and no others."""
    connection = duckdb.connect()
    for table in TABLES.values():
        connection.execute(f"create table {table.name} ({declared(table)})")
    for table, rows in ((RUNS, runs), (VISITS, visits)):
        connection.register("made", rows)
        connection.execute(f"insert into {table.name} by name from made")
    connection.execute(MACROS)
    return connection


class _State:
    """All runs of a world at one step of training: arrays [run, ...] or [run, question, ...]."""

    def __init__(self, world: World, arms: Array, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        runs, pool = len(arms), world.pool
        self.order = np.array([ORDERS.get(arm, 0.0) for arm in arms])
        self.draws = arms != "on_policy"
        self.replays = np.isin(arms, list(ORDERS))
        self.level = rng.integers(1, LEVELS + 1, pool)
        self.hardness = rng.normal(0, 0.7, pool)
        self.own = RATE + rng.normal(0, world.questions, pool)
        self.own = self.own + world.difficulty * (self.level - (LEVELS + 1) / 2)
        self.offset = rng.normal(0, world.seed_share, runs)
        high = np.where(arms == "highest_entropy", world.arm_drift, 0.0)
        self.gain = world.drift + high + rng.normal(0, world.seed_drift, runs)
        self.skill = rng.normal(0, 0.3, runs)
        self.general = np.zeros(runs)
        self.local = np.zeros((runs, pool))
        self.bucket = np.zeros((runs, pool), int)
        self.retired = np.zeros((runs, pool), bool)
        self.started = np.zeros(runs, bool)
        self.stored = np.zeros((runs, pool), int)
        self.entropy = np.zeros((runs, pool, KEPT))
        self.marked = np.zeros((runs, pool, KEPT), bool)
        self.stream = np.array([rng.permutation(pool) for _ in range(runs)])
        self.asked = np.zeros(runs, int)

    def step(self, step: int) -> dict[str, Array]:
        """Sample the batch of a step, learn from what was replayed; the step's groups [run, B]."""
        runs = np.arange(len(self.order))[:, None]
        question, drawn = self._batch()
        bucket_drawn = np.where(drawn, self.bucket[runs, question], 0)
        replay, replay_marked = self._choose(question, drawn)
        time = step / self.world.steps
        right, marked, entropy, chance = self._answers(question, replay, time)
        successes = right.sum(axis=2) + replay
        self._store(question, right, marked, entropy, successes)
        self.started |= right.mean(axis=(1, 2)) > START
        pulled = np.where(replay, replay_marked - chance, 0.0)
        np.add.at(
            self.local, (np.broadcast_to(runs, question.shape), question), self.world.pull * pulled
        )
        self.general += self.world.reach * pulled.sum(axis=1) / DRAWN
        return {
            "step": np.full(question.shape, step),
            "group": np.broadcast_to(np.arange(BATCH), question.shape),
            "question": question,
            "level": self.level[question],
            "experiential": drawn,
            "bucket_drawn": bucket_drawn,
            "right": right.sum(axis=2),
            "checked": right.sum(axis=2),
            "flawed": (right & marked).sum(axis=2),
            "replayed": replay.astype(int),
            "replayed_checked": replay.astype(int),
            "replayed_flawed": (replay & replay_marked).astype(int),
        }

    def _batch(self) -> tuple[Array, Array]:
        """Questions [run, B], and which of them were drawn from the buffer; those come last."""
        runs = np.arange(len(self.order))[:, None]
        open_ = (self.bucket > 0) & ~self.retired & (self.draws & self.started)[:, None]
        weight = np.exp(-0.5 * (np.arange(K) - K / 2) ** 2)
        sizes = np.stack([(open_ & (self.bucket == k)).sum(axis=1) for k in range(K)], axis=1)
        chance = np.where(open_, weight[self.bucket] / np.maximum(sizes[runs, self.bucket], 1), 0)
        with np.errstate(divide="ignore"):
            key = np.log(chance) + self.rng.gumbel(size=chance.shape)  # without replacement
        best = np.argpartition(-key, DRAWN, axis=1)[:, :DRAWN]
        drawn = np.zeros((len(runs), BATCH), bool)
        drawn[:, DRAWN:] = np.isfinite(np.take_along_axis(key, best, axis=1))
        fresh = self.stream[runs, (self.asked[:, None] + np.arange(BATCH)) % self.world.pool]
        self.asked += BATCH - drawn.sum(axis=1)
        question = fresh.copy()
        question[:, DRAWN:] = np.where(drawn[:, DRAWN:], best, fresh[:, DRAWN:])
        return question, drawn

    def _choose(self, question: Array, drawn: Array) -> tuple[Array, Array]:
        """Where a stored answer joins [run, B], and whether it is marked."""
        runs = np.arange(len(self.order))[:, None]
        there = np.minimum(self.stored, KEPT)[runs, question]
        replay = drawn & self.replays[:, None] & (there > 0)
        noise = self.rng.normal(0, 0.3, (*question.shape, KEPT))  # the policy has moved since
        score = self.order[:, None, None] * self.entropy[runs, question] + noise
        score = np.where(np.arange(KEPT) < there[..., None], score, np.inf)
        return replay, self.marked[runs, question, score.argmin(axis=2)]

    def _answers(
        self, question: Array, replay: Array, time: float
    ) -> tuple[Array, Array, Array, Array]:
        """right, marked, entropy [run, B, K], and the chance of a mark [run, B] at mean length."""
        world, rng = self.world, self.rng
        runs = np.arange(len(self.order))[:, None]
        ability = 2.5 - 0.6 * self.level - self.hardness
        able = ability[question] + 2.5 * time + self.skill[:, None]
        logit = self.own[question] + self.local[runs, question]
        logit += (self.offset + self.gain * time + self.general)[:, None]
        length = rng.normal(size=(*question.shape, K))
        right = rng.random(length.shape) < _share(able)[..., None]
        right[..., 0] &= ~replay  # its place is taken
        marked = rng.random(length.shape) < _share(logit[..., None] + world.length * length)
        entropy = rng.normal(size=length.shape) + world.tell * marked - world.length * length
        return right, marked, entropy, _share(logit)

    def _store(
        self, question: Array, right: Array, marked: Array, entropy: Array, successes: Array
    ) -> None:
        """New successes enter, questions move between buckets, solved ones retire."""
        run = np.broadcast_to(np.arange(len(question))[:, None], question.shape)
        solved = successes == K
        self.retired[run[solved], question[solved]] = True
        kept = (successes > 0) & ~solved & self.started[:, None] & self.draws[:, None]
        self.bucket[run[kept], question[kept]] = successes[kept]
        new = right & kept[..., None]
        place = self.stored[run, question][..., None] + new.cumsum(axis=2) - 1
        at = tuple(np.broadcast_to(each[..., None], new.shape)[new] for each in (run, question))
        self.entropy[*at, place[new] % KEPT] = entropy[new]
        self.marked[*at, place[new] % KEPT] = marked[new]
        np.add.at(self.stored, (run, question), new.sum(axis=2))


def _share(logit: Array) -> Array:
    return 1 / (1 + np.exp(-logit))


def _visits(runs: pl.DataFrame, steps: list[dict[str, Array]]) -> pl.DataFrame:
    """The groups of all steps as rows of table `visits`, as far as the snowball queries read it."""
    run = np.repeat(runs["run"].to_numpy(), BATCH)
    rows = pl.DataFrame(
        {
            "run": np.tile(run, len(steps)),
            **{name: np.concatenate([step[name].ravel() for step in steps]) for name in steps[0]},
        }
    )
    visit = pl.int_range(1, pl.len() + 1).over("run", "question", order_by=("step", "group"))
    return rows.with_columns(
        pl.format("q{}", "question").alias("question"),
        pl.when("experiential").then("bucket_drawn").alias("bucket_drawn"),
        visit=visit,
    )
