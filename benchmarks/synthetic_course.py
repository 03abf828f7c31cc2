"""What happens in a made-up run: responses, who is asked, who is right, what is replayed.

Questions, responses and markers are those of the task `chain`. Which questions a batch holds and
which bucket one lies in follow from what happened before, as in a real run; success is drawn.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import polars as pl

from exgrpo import chain
from exgrpo.markers import mark
from exgrpo.questions import Question

STEP_COUNT, GROUPS, K = 400, 32, 8
BATCH = GROUPS * K
KEPT = 4  # stored trajectories a question
LIMIT = 64  # tokens
FIRST_REPLAY = 10  # step
UNGRADED = 0.001  # share of the fresh rollouts
RESPONSES = 30  # drawn a question and run
REPLAYED: dict[str, int | None] = {
    "on_policy": None,
    "exgrpo": 1,
    "highest_entropy": -1,
    "question_replay": 0,
}
GAIN = {"on_policy": 1.4, "exgrpo": 2.0, "highest_entropy": 1.6, "question_replay": 1.2}

TOKEN_TEXTS = ["<eos>", *"0123456789+-*=;", "\\boxed{", "}"]
_TOKEN = {text: place for place, text in enumerate(TOKEN_TEXTS)}

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Responses:
    """Responses to some questions, with what grading and marking say about each.

    first, count [question, 0 wrong or 1 right]: where the responses of a question lie in `frame`.
    """

    frame: pl.DataFrame
    first: Array
    count: Array

    def draw(self, question: Array, right: Array, rng: np.random.Generator) -> Array:
        """The place of a random response for each (question, right or wrong)."""
        right = right.astype(int)
        within = (rng.random(len(question)) * self.count[question, right]).astype(int)
        return self.first[question, right] + within


@dataclass(frozen=True)
class Course:
    """What happened in a run, or in one step: who was asked, who was right, what was stored.

    [step, group]: question, experiential, successes, graded, before (bucket drawn from or known;
    0 if none). [step, group, slot]: right, ungraded. stored [step, group, KEPT]: rows of the
    question's stored trajectories, newest first, before the step; -1 where there are fewer.
    """

    question: Array
    experiential: Array
    successes: Array
    graded: Array
    before: Array
    right: Array
    ungraded: Array
    stored: Array

    @property
    def after(self) -> Array:
        """[step, group]: the bucket after the step, 0 if none."""
        return np.where(self.successes < self.graded, self.successes, 0)


def make_responses(questions: Sequence[Question], seed: str) -> Responses:
    """Demonstrations, some flawed, some cut off; at least one right and one wrong a question."""
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = []
    first = np.zeros((len(questions), 2), int)
    count = np.zeros((len(questions), 2), int)
    for place, question in enumerate(questions):
        drawn = [chain.demonstrate(question.text, rng, 0.12, 0.2, 0.25) for _ in range(RESPONSES)]
        drawn += [chain.explain(question.text), _cut_off(question.text, rng)]
        graded = [_grade(question, response) for response in drawn]
        for right in (0, 1):
            mine = [row for row in graded if row["correct"] == bool(right)]
            first[place, right], count[place, right] = len(rows), len(mine)
            rows += mine
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Responses(pl.DataFrame(columns), first, count)


def _cut_off(question: str, rng: random.Random) -> str:
    steps = chain.without_box(chain.demonstrate(question, rng, 0.5)) + ";"
    return (steps * LIMIT)[:LIMIT]


def _grade(question: Question, response: str) -> dict[str, Any]:
    steps, box, answer = response.partition("\\boxed{")
    tokens = [_TOKEN[text] for text in steps]
    if box:
        tokens += [_TOKEN[box], _TOKEN[answer[0]], _TOKEN["}"], _TOKEN["<eos>"]]
    markers = mark(question.source, question.text, response)
    return {
        "response": response,
        "token_ids": tokens,
        "length": len(tokens),
        "finish": "stop" if box else "length",
        "extracted": answer[0] if box else None,
        "correct": bool(box) and answer[0] == question.gold,
        "format_ok": bool(box),
        "code": markers.code,
        "shortcut": markers.shortcut,
        "repetition": markers.repetition,
        "step_errors": markers.step_errors,
        "chain_valid": markers.chain_valid,
    }


def skill(levels: Array, arm: str, rng: np.random.Generator) -> Array:
    """[step, question]: the share of right responses, from step 0; it rises with the steps."""
    ease = 1.5 - 0.5 * levels + rng.normal(0, 0.7, len(levels))
    gain = GAIN[arm] + rng.normal(0, 0.2)
    return 1 / (1 + np.exp(-ease - gain * np.arange(STEP_COUNT + 1)[:, None] / STEP_COUNT))


def play(arm: str, skill: Array, rng: np.random.Generator) -> Course:
    """Draw every batch: up to half from the buffer, the rest from the stream of questions."""
    total = skill.shape[1]
    bucket, retired = np.zeros(total, int), np.zeros(total, bool)
    stored = np.full((total, KEPT), -1)
    stream = np.zeros(0, int)
    steps: list[Course] = []
    for step in range(STEP_COUNT):
        known = np.flatnonzero(bucket) if REPLAYED[arm] is not None else np.zeros(0, int)
        count = min(GROUPS // 2, len(known)) if step + 1 >= FIRST_REPLAY else 0
        drawn = rng.choice(known, count, replace=False)
        stream = stream[~retired[stream] & ~np.isin(stream, drawn)]
        if len(stream) < GROUPS:
            retired &= (~retired).sum() > 3 * GROUPS  # nearly all are: they come back
            others = np.flatnonzero(~retired & ~np.isin(np.arange(total), drawn))
            stream = np.concatenate([stream, rng.permutation(np.setdiff1d(others, stream))])
        question = np.concatenate([drawn, stream[: GROUPS - count]])
        stream = stream[GROUPS - count :]
        ungraded = rng.random((GROUPS, K)) < UNGRADED
        right = rng.random((GROUPS, K)) < skill[step + 1, question, None]
        if REPLAYED[arm]:
            right[:count, 0], ungraded[:count, 0] = True, False
        right &= ~ungraded
        successes, graded = right.sum(1), K - ungraded.sum(1)
        now = Course(
            question=question,
            experiential=np.arange(GROUPS) < count,
            successes=successes,
            graded=graded,
            before=bucket[question],
            right=right,
            ungraded=ungraded,
            stored=stored[question],
        )
        steps.append(now)
        bucket[question] = np.where(successes < graded, successes, 0)
        retired[question] = (successes == graded) & (REPLAYED[arm] is not None)
        fresh = right.copy()
        fresh[:count, 0] &= not REPLAYED[arm]
        new, slot = fresh.any(1) & (bucket[question] > 0), fresh.argmax(1)
        row = step * BATCH + np.arange(GROUPS) * K + slot
        stored[question[new], 1:] = stored[question[new], :-1]
        stored[question[new], 0] = row[new]
    return Course(
        **{each.name: np.stack([getattr(s, each.name) for s in steps]) for each in fields(Course)}
    )
