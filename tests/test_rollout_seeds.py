"""What is sampled for a question in a step: decided by seed, step, question and slot alone."""

import dataclasses
from collections import Counter
from typing import Any

import pytest
from prompted import prompted
from watched import little

from exgrpo.batch import Group, Row
from exgrpo.checkpoint import Progress
from exgrpo.context import RunContext
from exgrpo.evaluation import evaluate
from exgrpo.grading import Grader
from exgrpo.policy import load_policy
from exgrpo.rollout.torch_engine import TorchEngine
from exgrpo.scorer import Scorer
from exgrpo.step import _roll_out
from exgrpo.step_records import Clock
from exgrpo.update import Learner

Tokens = dict[tuple[str, int, int], list[int]]  # by question, its turn in the step, and slot


@pytest.fixture(scope="module")
def context(able_folder: str, grader: Grader) -> RunContext:
    """As much of a run as rollouts need."""
    policy, tokenizer = load_policy(able_folder)
    unused: Any = None
    settings = little(training={"dtype": "float32"})
    return RunContext(
        settings,
        {},
        [],
        Learner(Scorer(policy), unused, unused),
        policy,
        tokenizer,
        {},
        grader=grader,
        recorder=unused,
        engine=TorchEngine(policy),
    )


@pytest.fixture(scope="module")
def groups(context: RunContext, able_folder: str) -> list[Group]:
    """Four questions, the first of them twice."""
    found = [Group(each) for each in prompted(context.settings.questions, able_folder)["train"]]
    return [*found, found[0]]


def sampled(rows: list[Row]) -> Tokens:
    turns: Counter[tuple[str, int]] = Counter()
    found = {}
    for row in rows:
        key = row.question.id, row.slot
        found[row.question.id, turns[key], row.slot] = row.sequence.response_ids
        turns[key] += 1
    return found


def roll(context: RunContext, groups: list[Group], step: int = 3, **more: Any) -> Tokens:
    return sampled(_roll_out(context, Progress(step=step), groups, {}, Clock(), **more))


def changed(context: RunContext, **sections: Any) -> RunContext:
    values = context.settings.model_dump() | sections
    settings = type(context.settings).model_validate(values)
    return dataclasses.replace(context, settings=settings)


def test_neither_the_order_of_questions_nor_the_batch_matters(
    context: RunContext, groups: list[Group]
) -> None:
    found = roll(context, groups)
    assert len(found) == 5 * 8
    rollout = context.settings.rollout.model_dump()
    for size in (1, 3, 17):
        assert roll(changed(context, rollout=rollout | {"batch": size}), groups[::-1]) == found
    in_two_rounds = roll(context, groups[:3]) | sampled(
        _roll_out(context, Progress(step=3), groups[3:4], {}, Clock(), earlier=groups[:3])
    )
    assert in_two_rounds == {key: ids for key, ids in found.items() if key[1] == 0}


def test_a_question_that_comes_twice_in_a_step_is_answered_anew(
    context: RunContext, groups: list[Group]
) -> None:
    found = roll(context, groups)
    twice = groups[0].question.id
    first, second = ([found[twice, turn, slot] for slot in range(8)] for turn in (0, 1))
    assert first != second
    later = _roll_out(context, Progress(step=3), groups[4:], {}, Clock(), earlier=groups[:4])
    assert [row.sequence.response_ids for row in later] == second


def test_a_replayed_one_takes_its_slot_and_leaves_the_others_as_they_were(
    context: RunContext, groups: list[Group]
) -> None:
    found = roll(context, groups[:4])
    joined = roll(context, [dataclasses.replace(group, replays=1) for group in groups[:4]])
    assert joined == {key: ids for key, ids in found.items() if key[2] > 0}


def test_another_seed_or_step_samples_others(context: RunContext, groups: list[Group]) -> None:
    found = roll(context, groups)
    assert roll(context, groups, step=4) != found
    assert roll(changed(context, seed=1), groups) != found


def test_samples_of_an_evaluation_are_their_questions(
    context: RunContext, grader: Grader, able_folder: str
) -> None:
    nine = context.settings.questions.model_copy(update={"test_id": 9})
    splits = prompted(nine, able_folder)["test_id"]

    def answers(context: RunContext, asked: list[Any], seed: int = 5) -> dict[Any, str]:
        rows = evaluate(
            context.sampler, asked, 3, context.settings, seed,
            run="r", step=0, benchmark="test_id",
        )  # fmt: skip
        return {(row["question"], row["sample"]): row["response"] for row in rows}

    limit = context.settings.evaluation.model_dump() | {"max_new_tokens": 12}
    context = changed(context, evaluation=limit)
    found = answers(context, splits)
    assert len(found) == 27 and len(set(found.values())) > 9
    rollout = context.settings.rollout.model_dump()
    assert answers(changed(context, rollout=rollout | {"batch": 4}), splits[::-1]) == found
    assert answers(context, splits, seed=6) != found
