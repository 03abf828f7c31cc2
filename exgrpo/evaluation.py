"""Evaluation: several samples a question, every sample a row."""

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from exgrpo.grading import Grader
from exgrpo.markers import mark
from exgrpo.policy import stop_ids
from exgrpo.questions import Question
from exgrpo.rollout import Sampling
from exgrpo.rollout.torch_engine import generate
from exgrpo.seeds import derived_seed
from exgrpo.settings import RunSettings

CHUNK = 1024  # sequences sampled, then graded


def evaluate(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    questions: Sequence[Question],
    samples: int,
    settings: RunSettings,
    grader: Grader,
    seed: int,
    **key: Any,
) -> list[dict[str, Any]]:
    """Rows of the table `evaluations`, `samples` a question; `key` gives run, step, benchmark.

    Sample i of a question is decided by (seed, question, i) and the policy.
    """
    rules = settings.evaluation
    sampling = Sampling(
        rules.temperature,
        rules.max_new_tokens,
        stop_ids(model, tokenizer),
        settings.rollout.batch,
    )
    rows: list[dict[str, Any]] = []
    size = max(1, CHUNK // samples)
    for start in range(0, len(questions), size):
        chunk = questions[start : start + size]
        prompts = [tokenizer(question.text).input_ids for question in chunk]
        seeds = [
            [derived_seed(seed, question.id, sample) for sample in range(samples)]
            for question in chunk
        ]
        groups = generate(model, prompts, seeds, sampling)
        asked = [question for question in chunk for _ in range(samples)]
        rollouts = [rollout for group in groups for rollout in group]
        responses = tokenizer.batch_decode(
            [rollout.token_ids for rollout in rollouts], skip_special_tokens=True
        )
        verdicts = grader.grade_all(
            [(question.gold, text) for question, text in zip(asked, responses, strict=True)]
        )
        for index, (question, rollout, response, verdict) in enumerate(
            zip(asked, rollouts, responses, verdicts, strict=True)
        ):
            markers = mark(question.source, question.text, response)
            rows.append(
                {
                    **key,
                    "question": question.id,
                    "sample": index % samples,
                    "level": question.level,
                    "temperature": rules.temperature,
                    "response": response,
                    "length": len(rollout.token_ids),
                    "finish": rollout.finish,
                    "extracted": verdict.extracted,
                    "correct": verdict.correct,
                    "mean_entropy": rollout.mean_entropy,
                    "nll": rollout.nll,
                    "shortcut": markers.shortcut,
                    "step_errors": markers.step_errors,
                    "chain_valid": markers.chain_valid,
                }
            )
    return rows
