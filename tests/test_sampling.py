"""Sampling with grading beside it: the same verdicts as one after the other, and really beside."""

import dataclasses
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from lessons import QUESTIONS
from prompted import prompted

from exgrpo.grading import Answer, Grader, Rules, Verdict, rules_of
from exgrpo.policy import load_policy, response_texts, stop_ids
from exgrpo.questions import Question
from exgrpo.rollout import Sampling, torch_engine
from exgrpo.rollout.torch_engine import generate
from exgrpo.sampling import sample_and_grade
from exgrpo.settings import Questions

SEEDS = [[1, 2, 3], [], [4], [5, 6]]  # six rollouts
PATIENCE = 60.0  # seconds for what happens at once where sampling goes on; no time is measured


@dataclasses.dataclass(frozen=True)
class Asked:
    """What `sample_and_grade` takes, but for the grader and the rules."""

    model: Any
    tokenizer: Any
    questions: list[Question]
    stop: tuple[int, ...]

    def sampling(self, batch: int) -> Sampling:
        return Sampling(1.0, 20, self.stop, batch)


@pytest.fixture(scope="module")
def asked(able_folder: str) -> Asked:
    model, tokenizer = load_policy(able_folder)
    questions = prompted(Questions.model_validate(QUESTIONS), able_folder)["train"]
    return Asked(model, tokenizer, questions, stop_ids(model, tokenizer))


def boxed(question: Question) -> Rules:
    return rules_of(question.kind)


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_verdicts_are_those_of_grading_afterwards(asked: Asked, grader: Grader, batch: int) -> None:
    sampling = asked.sampling(batch)
    prompts = [list(question.prompt_ids) for question in asked.questions]
    groups = generate(asked.model, prompts, SEEDS, sampling)
    order: list[str] = []
    found = sample_and_grade(
        asked.model, asked.tokenizer, asked.questions, SEEDS, sampling, grader, boxed,
        lambda: order.append("all sampled"),
    )  # fmt: skip
    assert [len(own) for own in found] == [len(own) for own in SEEDS]
    assert order == ["all sampled"]
    for question, rollouts, own in zip(asked.questions, groups, found, strict=True):
        ids = [rollout.token_ids for rollout in rollouts]
        assert [each.rollout.token_ids for each in own] == ids
        texts = response_texts(asked.tokenizer, ids, asked.stop)
        assert [each.response for each in own] == texts
        verdicts = grader.grade_all([Answer(question.gold, text) for text in texts])
        assert [each.verdict for each in own] == verdicts


def test_every_question_is_read_by_its_own_rules(asked: Asked, grader: Grader) -> None:
    kinds = ["boxed", "mcq", "boxed", "mcq"]
    questions = [
        dataclasses.replace(question, kind=kind)
        for question, kind in zip(asked.questions, kinds, strict=True)
    ]
    sampling = asked.sampling(2)
    seeds = [[1], [2], [3], [4]]
    found = sample_and_grade(
        asked.model, asked.tokenizer, questions, seeds, sampling, grader, boxed
    )
    undecided = [own[0].verdict.correct is None for own in found]
    assert undecided == [False, True, False, True]  # a number is the letter of no choice


class Watched(Grader):
    """A grader that says when it graded; its first call waits until two batches are sampled."""

    def __init__(self, events: list[str], second: threading.Event) -> None:
        super().__init__(workers=1)
        self.events, self.second = events, second

    def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
        self.events.append("grading" if self.second.wait(PATIENCE) else "waited in vain")
        return super().grade_all(items)


def test_a_batch_is_graded_while_the_next_is_sampled(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    second = threading.Event()
    sample = torch_engine._generate_batch

    def watched(*arguments: Any) -> Any:
        rollouts = sample(*arguments)
        events.append("sampled")
        if events.count("sampled") == 2:
            second.set()
        return rollouts

    monkeypatch.setattr(torch_engine, "_generate_batch", watched)
    with Watched(events, second) as grader:
        sample_and_grade(
            asked.model, asked.tokenizer, asked.questions, SEEDS, asked.sampling(3), grader, boxed
        )
    assert events == ["sampled", "sampled", "grading", "grading"]


class Failing(Grader):
    def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
        raise OSError("no process can be started")


def test_an_error_of_the_grading_is_raised_and_leaves_no_thread(asked: Asked) -> None:
    with Failing() as grader, pytest.raises(OSError, match="no process can be started"):
        sample_and_grade(
            asked.model, asked.tokenizer, asked.questions, SEEDS, asked.sampling(2), grader, boxed
        )
    assert not [each for each in threading.enumerate() if each.name.startswith("grading")]
