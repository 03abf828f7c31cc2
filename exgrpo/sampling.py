"""Sampling with grading beside it: a batch is graded while the next is sampled."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from exgrpo.grading import Answer, Grader, Rules, Verdict
from exgrpo.policy import response_texts
from exgrpo.processes import ALONE, Processes
from exgrpo.questions import Question
from exgrpo.rollout import Engine, Rollout, Sampling


@dataclass(frozen=True, eq=False)
class Sampled:
    """A rollout, its text (`exgrpo.policy.response_texts`), and the verdict on it."""

    rollout: Rollout
    response: str
    verdict: Verdict


@dataclass(frozen=True)
class Sampler:
    """What samples and grades. stop_ids: the token ids that end a response."""

    engine: Engine
    tokenizer: PreTrainedTokenizerBase
    stop_ids: tuple[int, ...]
    grader: Grader
    processes: Processes = ALONE


def sample_and_grade(
    sampler: Sampler,
    questions: Sequence[Question],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    rules: Callable[[Question], Rules],
    all_sampled: Callable[[], None] = lambda: None,
) -> list[list[Sampled]]:
    """A graded rollout of question i for each of seeds[i]; prompts are the questions' own ids.

    The questions are dealt out among the processes; each returns all. rules: how responses to a
    question are read. all_sampled: called when nothing is left to sample here; the rest is the wait
    for the last verdicts. An error of the grading is raised here, at the next batch; after any
    error what is not being graded yet is given up.
    """
    processes = sampler.processes
    own = _sample_and_grade(
        sampler, processes.own(questions), processes.own(seeds), sampling, rules, all_sampled
    )
    shares = processes.gather(own)
    return [
        shares[index % processes.count][index // processes.count] for index in range(len(questions))
    ]


def _sample_and_grade(
    sampler: Sampler,
    questions: Sequence[Question],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    rules: Callable[[Question], Rules],
    all_sampled: Callable[[], None],
) -> list[list[Sampled]]:
    """The share of this process."""
    asked = [question for question, own in zip(questions, seeds, strict=True) for _ in own]

    def grade(numbers: Sequence[int], rollouts: Sequence[Rollout]) -> list[Sampled]:
        texts = response_texts(
            sampler.tokenizer, [rollout.token_ids for rollout in rollouts], sampling.stop_ids
        )
        own = [asked[number] for number in numbers]
        verdicts = sampler.grader.grade_all(
            [
                Answer(question.gold, text, rules(question))
                for question, text in zip(own, texts, strict=True)
            ]
        )
        return [Sampled(*each) for each in zip(rollouts, texts, verdicts, strict=True)]

    batches: list[tuple[Sequence[int], Future[list[Sampled]]]] = []
    beside = ThreadPoolExecutor(1, "grading")

    def hand_over(numbers: Sequence[int], rollouts: Sequence[Rollout]) -> None:
        for _, earlier in batches:
            if earlier.done():
                earlier.result()  # raises what went wrong in it
        batches.append((numbers, beside.submit(grade, numbers, rollouts)))

    try:
        prompts = [list(question.prompt_ids) for question in questions]
        sampler.engine.generate(prompts, seeds, sampling, hand_over)
        all_sampled()
        graded = {
            number: each
            for numbers, batch in batches
            for number, each in zip(numbers, batch.result(), strict=True)
        }
    finally:
        beside.shutdown(cancel_futures=True)  # an answer that hangs costs its whole limit
    in_order = iter(graded[number] for number in range(len(asked)))
    return [[next(in_order) for _ in own] for own in seeds]
