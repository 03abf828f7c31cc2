"""Sampling with grading beside it: a batch is graded while the next is sampled."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from exgrpo.grading import Answer, Grader, Rules, Verdict
from exgrpo.policy import response_texts
from exgrpo.questions import Question
from exgrpo.rollout import Rollout, Sampling
from exgrpo.rollout.torch_engine import generate


@dataclass(frozen=True, eq=False)
class Sampled:
    """A rollout, its text (`exgrpo.policy.response_texts`), and the verdict on it."""

    rollout: Rollout
    response: str
    verdict: Verdict


def sample_and_grade(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    grader: Grader,
    rules: Callable[[Question], Rules],
    all_sampled: Callable[[], None] = lambda: None,
) -> list[list[Sampled]]:
    """A graded rollout of question i for each of seeds[i]; prompts are the questions' own ids.

    rules: how responses to a question are read. all_sampled: called when nothing is left to sample;
    the rest is the wait for the last verdicts. An error of the grading is raised here, at the next
    batch; after any error what is not being graded yet is given up.
    """
    asked = [question for question, own in zip(questions, seeds, strict=True) for _ in own]

    def grade(numbers: Sequence[int], rollouts: Sequence[Rollout]) -> list[Sampled]:
        texts = response_texts(
            tokenizer, [rollout.token_ids for rollout in rollouts], sampling.stop_ids
        )
        own = [asked[number] for number in numbers]
        verdicts = grader.grade_all(
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
        generate(model, prompts, seeds, sampling, hand_over)
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
