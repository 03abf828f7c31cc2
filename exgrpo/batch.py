"""A step's batch: its groups, how each came out, and one row a trajectory."""

import dataclasses
import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
import torch
from torch import Tensor

from exgrpo.experience import Trajectory, token_key
from exgrpo.grading import Verdict
from exgrpo.policy import TokenScores, TokenSequence
from exgrpo.questions import Question
from exgrpo.sampling import Sampled
from exgrpo.selection import Candidate, Draw
from exgrpo.settings import Buffer, RunSettings


@dataclass(frozen=True)
class Group:
    """A question in the batch. draw: it came from the buffer. candidates: its stored trajectories,
    in the arm's order; the first `replays` of them join the group."""

    question: Question
    draw: Draw | None = None
    candidates: tuple[Candidate, ...] = ()
    replays: int = 0

    @property
    def prompt_ids(self) -> list[int]:
        return list(self.question.prompt_ids)


@dataclass(frozen=True)
class Outcome:
    """How a group came out: `successes` right of `size` graded trajectories (k of K).

    A replayed trajectory counts or not, as `buffer.count_replayed` says.
    """

    successes: int
    size: int
    ungraded: int = 0

    @property
    def solved(self) -> bool:
        return 0 < self.successes == self.size

    @property
    def failed(self) -> bool:
        return self.successes == 0 < self.size

    @property
    def bucket(self) -> int | None:
        """k where there is something to learn from, else None."""
        return self.successes if 0 < self.successes < self.size else None

    @property
    def difficulty(self) -> str | None:
        """The paper's three ranges (facts 4.7): at K = 8 hard is k 1-2, medium 3-5, easy 6-7."""
        if self.bucket is None:
            return None
        share = self.successes / self.size
        return "hard" if share <= 0.25 else "easy" if share >= 0.75 else "medium"


@dataclass(frozen=True, eq=False)
class Row:
    """One trajectory of the batch. Per-token arrays have one value a response token.

    previous_logprobs, entropies: under the policy before this step's update. behaviour_logprobs:
    under the policy that sampled it, as the engine worked them out: for a fresh one the same but
    for the engine's rounding, and exactly where it is the trainer's. source, birth_step: where a
    replayed trajectory comes from; a fresh one is born now. trained: it is in the update.
    """

    id: str
    group: int
    slot: int
    question: Question
    sequence: TokenSequence
    behaviour_logprobs: np.ndarray
    previous_logprobs: np.ndarray
    entropies: np.ndarray
    finish: str
    source: str | None
    birth_step: int
    response: str
    verdict: Verdict
    advantage: float = 0.0
    trained: bool = True

    def __post_init__(self) -> None:
        tokens = len(self.sequence.response_ids)
        for name in ("behaviour_logprobs", "previous_logprobs", "entropies"):
            if len(getattr(self, name)) != tokens:  # never cut or filled up to fit
                raise ValueError(
                    f"{self.id}: {len(getattr(self, name))} {name} for {tokens} tokens"
                )

    @property
    def replayed(self) -> bool:
        return self.source is not None

    @property
    def reward(self) -> float:
        """1 right, 0 wrong, NaN ungraded."""
        return torch.nan if self.verdict.correct is None else float(self.verdict.correct)


def fresh_row(
    run: str,
    step: int,
    group: int,
    slot: int,
    of: Group,
    sampled: Sampled,
    scores: TokenScores | None,
) -> Row:
    """The batch row of a rollout sampled now; scores: the trainer's; None: the engine's are."""
    rollout = sampled.rollout
    previous = rollout.logprobs if scores is None else scores.logprobs.numpy()
    entropies = rollout.entropies if scores is None else scores.entropies.numpy()
    assert entropies is not None
    return Row(
        id=f"{run}:{step}:{group}:{slot}",
        group=group,
        slot=slot,
        question=of.question,
        sequence=TokenSequence(of.prompt_ids, rollout.token_ids),
        behaviour_logprobs=rollout.logprobs,
        previous_logprobs=previous,
        entropies=entropies,
        finish=rollout.finish,
        source=None,
        birth_step=step,
        response=sampled.response,
        verdict=sampled.verdict,
    )


def replayed_row(
    run: str,
    step: int,
    group: int,
    slot: int,
    of: Group,
    chosen: Trajectory,
    scores: TokenScores,
    response: str,
    verdict: Verdict,
) -> Row:
    """The batch row of a stored trajectory; scores: of its response under the policy now."""
    return Row(
        id=f"{run}:{step}:{group}:{slot}",
        group=group,
        slot=slot,
        question=of.question,
        sequence=chosen.sequence,
        behaviour_logprobs=chosen.logprobs,
        previous_logprobs=scores.logprobs.numpy(),
        entropies=scores.entropies.numpy(),
        finish=chosen.finish,
        source=chosen.id,
        birth_step=chosen.birth_step,
        response=response,
        verdict=verdict,
    )


def in_order(shares: Iterable[Sequence[Row]]) -> list[Row]:
    """The rows of all shares (of the processes that graded them) by group and slot."""
    return sorted((row for share in shares for row in share), key=lambda row: (row.group, row.slot))


def reward_table(rows: Sequence[Row], groups: int) -> tuple[Tensor, Tensor]:
    """Rewards of the trained rows and which are replayed, each [groups, places]; NaN: none."""
    places = 1 + max((row.slot for row in rows), default=0)
    rewards = torch.full((groups, places), torch.nan, dtype=torch.float64)
    replayed = torch.zeros(groups, places, dtype=torch.bool)
    for row in rows:
        if row.trained:
            rewards[row.group, row.slot] = row.reward
            replayed[row.group, row.slot] = row.replayed
    return rewards, replayed


def outcomes(rows: Sequence[Row], groups: int, settings: RunSettings) -> list[Outcome]:
    """How every group came out, over the graded trajectories that count."""
    counted: list[list[float]] = [[] for _ in range(groups)]
    for row in rows:
        counts = not row.replayed or settings.buffer.count_replayed
        if counts:
            counted[row.group].append(row.reward)
    return [
        Outcome(
            rewards.count(1.0), rewards.count(1.0) + rewards.count(0.0), sum(map(isnan, rewards))
        )
        for rewards in counted
    ]


def learns(outcome: Outcome, settings: RunSettings) -> bool:
    """Whether a group has something to learn from, and is of the difficulty that is not masked."""
    masked = settings.objective.difficulty not in (None, outcome.difficulty)
    return outcome.bucket is not None and not masked


def with_advantages(rows: Sequence[Row], advantages: Tensor) -> list[Row]:
    """The rows with their advantages, [groups, places]; 0 for a row that is not trained."""
    values = advantages.tolist()
    return [
        dataclasses.replace(row, advantage=values[row.group][row.slot] if row.trained else 0.0)
        for row in rows
    ]


def to_store(row: Row, rules: Buffer, end_id: int) -> Trajectory | None:
    """What the buffer keeps of a row: token ids and log-probabilities now; None: nothing.

    Only what was sampled now and is right, or all of it (RePO). A success that was cut off has no
    end to learn: it is left out, or gets an end token of probability 1, as in the released code.
    """
    everything = rules.store == "all" and row.verdict.correct is not None
    cut_off = row.finish == "length"
    fitting = row.verdict.correct and (not cut_off or rules.store_truncated)
    if row.replayed or not (fitting or everything):
        return None
    ended = cut_off and rules.store_truncated
    token_ids = np.array([*row.sequence.response_ids, *[end_id] * ended], dtype=np.int32)
    match rules.duplicates:
        case "token_ids":
            key = token_key(token_ids)
        case "text":
            key = hashlib.sha256(row.response.encode()).hexdigest()
        case "kept":
            key = row.id
    return Trajectory(
        id=row.id,
        question=row.question.id,
        prompt_ids=row.sequence.prompt_ids,
        token_ids=token_ids,
        logprobs=np.append(row.behaviour_logprobs, [0.0] * ended).astype(np.float32),
        birth_step=row.birth_step,
        birth_entropy=float(row.entropies.mean(dtype=np.float64)),
        correct=bool(row.verdict.correct),
        key=key,
        finish="stop" if ended else row.finish,
    )
