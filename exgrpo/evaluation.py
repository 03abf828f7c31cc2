"""Evaluation: several samples a question, every sample a row."""

from collections.abc import Iterator, Sequence
from typing import Any

from exgrpo.grading import Answer, Rules, rules_for, vote
from exgrpo.markers import mark
from exgrpo.questions import Question
from exgrpo.rollout import Sampling
from exgrpo.sampling import Sampled, Sampler, sample_and_grade
from exgrpo.seeds import derived_seed
from exgrpo.settings import RunSettings

BATCHES = 4  # of sequences in a chunk: what a kill can cost, and as much as is held at once


def chunks(
    questions: Sequence[Question], samples: int, settings: RunSettings
) -> Iterator[Sequence[Question]]:
    """The questions in the portions in which they are sampled, `samples` a question."""
    size = max(1, BATCHES * settings.rollout.batch // samples)
    return (questions[start : start + size] for start in range(0, len(questions), size))


def evaluate(
    sampler: Sampler,
    questions: Sequence[Question],
    samples: int,
    settings: RunSettings,
    seed: int,
    test: bool = False,
    **key: Any,
) -> list[dict[str, Any]]:
    """Rows of the table `evaluations`, `samples` a question; `key` gives run, step, benchmark.

    Sample i of a question is decided by (seed, question, i) and the policy. test: responses are
    read as at a test, which may leave out what training asks for (`grading.think_at_test`).
    Every question must have its prompt ids.
    """
    sampling = Sampling(
        settings.evaluation.temperature,
        settings.evaluation.max_new_tokens,
        sampler.stop_ids,
        settings.rollout.batch,
    )

    def rules(question: Question) -> Rules:
        return rules_for(question.kind, settings.grading, test)

    rows: list[dict[str, Any]] = []
    for chunk in chunks(questions, samples, settings):
        seeds = [
            [derived_seed(seed, question.id, sample) for sample in range(samples)]
            for question in chunk
        ]
        answers = sample_and_grade(sampler, chunk, seeds, sampling, rules)
        rows += [
            {**key, "sample": sample, **row_of(question, answer, rules(question), settings)}
            for question, own in zip(chunk, answers, strict=True)
            for sample, answer in enumerate(own)
        ]
    return rows


def row_of(
    question: Question, answer: Sampled, rules: Rules, settings: RunSettings
) -> dict[str, Any]:
    """What a row holds of one answer; what grading could not read counts as not answered."""
    rollout, verdict = answer.rollout, answer.verdict
    markers = mark(question.source, question.text, answer.response)
    return {
        "question": question.id,
        "level": question.level,
        "temperature": settings.evaluation.temperature,
        "response": answer.response,
        "length": len(rollout.token_ids),
        "finish": rollout.finish,
        "extracted": verdict.extracted if verdict.format_ok else None,
        "vote": vote(Answer(question.gold, answer.response, rules), verdict),
        "correct": verdict.correct,
        "mean_entropy": rollout.mean_entropy,
        "nll": rollout.nll,
        "shortcut": markers.shortcut,
        "step_errors": markers.step_errors,
        "chain_valid": markers.chain_valid,
    }
