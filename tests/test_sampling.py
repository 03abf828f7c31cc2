"""Sampling with grading beside it: the same verdicts as one after the other, and really beside."""

import dataclasses
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lessons import QUESTIONS
from prompted import prompted
from test_trainer import read, run, settings

from exgrpo import step
from exgrpo.grading import Answer, Grader, Rules, Verdict, rules_of
from exgrpo.policy import load_policy, response_texts, stop_ids
from exgrpo.questions import Question
from exgrpo.rollout import Sampling, torch_engine
from exgrpo.rollout.torch_engine import TorchEngine, generate
from exgrpo.sampling import Sampler, sample_and_grade
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

    def sampler(self, grader: Any) -> Sampler:
        return Sampler(TorchEngine(self.model), self.tokenizer, self.stop, grader)

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
        asked.sampler(grader), asked.questions, SEEDS, sampling, boxed,
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
    found = sample_and_grade(asked.sampler(grader), questions, seeds, sampling, boxed)
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
        sample_and_grade(asked.sampler(grader), asked.questions, SEEDS, asked.sampling(3), boxed)
    assert events == ["sampled", "sampled", "grading", "grading"]


class Failing(Grader):
    def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
        raise OSError("no process can be started")


def test_an_error_of_the_grading_is_raised_and_leaves_no_thread(asked: Asked) -> None:
    with Failing() as grader, pytest.raises(OSError, match="no process can be started"):
        sample_and_grade(asked.sampler(grader), asked.questions, SEEDS, asked.sampling(2), boxed)
    assert not [each for each in threading.enumerate() if each.name.startswith("grading")]


def test_an_error_of_the_grading_stops_the_sampling(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told when the next batch is handed over, not after hours of sampling for nothing."""
    failed = threading.Event()

    class Told(Failing):
        def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
            try:
                return super().grade_all(items)
            finally:
                failed.set()

    sample, sampled = torch_engine._generate_batch, 0

    def counted(*arguments: Any) -> Any:
        nonlocal sampled
        sampled += 1
        if sampled > 1:
            assert failed.wait(PATIENCE)
            time.sleep(0.05)  # the error has been raised; its future knows it in an instant
        return sample(*arguments)

    monkeypatch.setattr(torch_engine, "_generate_batch", counted)
    with Told() as grader, pytest.raises(OSError, match="no process can be started"):
        sample_and_grade(asked.sampler(grader), asked.questions, SEEDS, asked.sampling(1), boxed)
    assert sampled == 2


def test_an_interrupted_sampling_leaves_the_queued_batches_ungraded(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted = threading.Event()
    graded: list[int] = []

    class Slow(Grader):
        def grade_all(self, items: Sequence[Answer]) -> list[Verdict]:
            graded.append(len(items))
            assert interrupted.wait(PATIENCE)
            time.sleep(0.1)  # so that what is queued is cancelled before this one is done
            return super().grade_all(items)

    sample, sampled = torch_engine._generate_batch, 0

    def interrupt(*arguments: Any) -> Any:
        nonlocal sampled
        sampled += 1
        if sampled == 5:
            interrupted.set()
            raise KeyboardInterrupt
        return sample(*arguments)

    monkeypatch.setattr(torch_engine, "_generate_batch", interrupt)
    with Slow() as grader, pytest.raises(KeyboardInterrupt):
        sample_and_grade(asked.sampler(grader), asked.questions, SEEDS, asked.sampling(1), boxed)
    assert graded == [1]


@pytest.mark.parametrize("count", [0, 2])
def test_where_nothing_is_asked_nothing_is_sampled(
    asked: Asked, grader: Grader, count: int
) -> None:
    order: list[str] = []
    found = sample_and_grade(
        asked.sampler(grader), asked.questions[:count], [[]] * count, asked.sampling(2), boxed,
        lambda: order.append("all sampled"),
    )  # fmt: skip
    assert found == [[]] * count and order == ["all sampled"]


def test_replayed_trajectories_are_graded_while_others_are_sampled(
    base_folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No batch of a step is sampled before the replayed ones are with the grader."""
    rolling, graded = threading.Event(), threading.Event()
    roll_out, sample, grade_all = step._roll_out, torch_engine._generate_batch, Grader.grade_all
    counts: list[int] = []
    in_vain = []

    def rolled(*arguments: Any) -> Any:
        graded.clear()
        rolling.set()
        try:
            return roll_out(*arguments)
        finally:
            rolling.clear()

    def waited(*arguments: Any) -> Any:
        if rolling.is_set() and not graded.wait(PATIENCE):
            in_vain.append("a batch")
        return sample(*arguments)

    def told(self: Grader, items: Sequence[Answer]) -> list[Verdict]:
        if threading.current_thread().name.startswith("grading-replayed"):
            counts.append(len(items))
            graded.set()
        return grade_all(self, items)

    monkeypatch.setattr(step, "_roll_out", rolled)
    monkeypatch.setattr(torch_engine, "_generate_batch", waited)
    monkeypatch.setattr(Grader, "grade_all", told)
    run(tmp_path, base_folder, settings(training={"steps": 3}))
    assert not in_vain
    rows = read(tmp_path, "trajectories").sort("step")
    replayed = rows.group_by("step", maintain_order=True).agg(pl.col("replayed").sum())["replayed"]
    assert counts == replayed.to_list() and sum(counts) > 0
