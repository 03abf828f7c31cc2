"""Rollouts, tokens, buffer, disk and time of a run, from its settings and stated assumptions."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil, floor, log2
from pathlib import Path

import pyarrow.parquet as pq

from exgrpo.checkpoint import KEEP
from exgrpo.plan.memory import Case
from exgrpo.question_settings import Benchmark, DataSet
from exgrpo.settings import RunSettings
from exgrpo.tables.manifest import live_parts

# Bytes of the log as the recorder writes them (Parquet, zstd), measured on a random model's log
# (docs/plan.md): floats a token, and the other columns a trajectory. Of a trained model, whose
# tokens are surer, floats take less. Text is taken at four letters a token and a third of them left
# by zstd; token ids take the bits of the vocabulary.
FLOAT_BYTES = 3.0
TEXT_BYTES = 1.4
ROW_BYTES = 100
BUFFER_TOKEN = 8  # bytes: an id of 32 bits, a log-probability of 32
BUFFER_PROMPT_TOKEN = 8  # a pointer: a prompt is a Python list
BUFFER_OBJECT = 1000  # of Python around a trajectory


@dataclass(frozen=True)
class Rates:
    """Tokens a second on each GPU, measured or assumed: sampled, and put through an update."""

    rollout: float
    update: float


@dataclass(frozen=True)
class Volume:
    """Of one run, evaluation apart. Tokens are of responses; `update_tokens` with prompts."""

    rollouts: int
    rollout_tokens: float
    most_rollout_tokens: float
    update_tokens: float
    scored_tokens: float  # forwards of the trainer over another engine's tokens
    validation_tokens: float
    stored: float
    stored_values: float  # bytes of token ids and log-probabilities in the buffer
    buffer_bytes: float  # with prompts and Python's objects
    log_bytes: float
    checkpoint_bytes: float
    final_bytes: float


def volume_of(case: Case, success: float, validation: int) -> Volume:
    """success: share of rollouts that are right and are stored; validation: questions."""
    settings, lengths = case.settings, case.lengths
    steps, batch = settings.training.steps, settings.batch
    fresh = batch.questions * settings.rollout.group_size - replayed_a_step(settings)
    rollouts = steps * fresh
    trained = steps * batch.questions * case.group
    stored = success * rollouts if settings.experience.replay != "none" else 0.0
    if settings.buffer.capacity is not None:
        stored = min(stored, settings.buffer.capacity)
    one = (
        BUFFER_TOKEN * lengths.mean_response
        + BUFFER_PROMPT_TOKEN * lengths.mean_prompt
        + BUFFER_OBJECT
    )
    parameters = case.shape.parameters
    models = 1 + settings.training.keep_best
    checks = 2 + (steps - 1) // settings.evaluation.every  # before, every so often, at the end
    samples = checks * validation * settings.evaluation.validation_samples
    copies = 2 if settings.objective.kl_reference else 1
    state = case.weight_bytes * parameters * (2 + copies)  # moments, weights, reference
    update_tokens = trained * (lengths.mean_prompt + lengths.mean_response) * batch.passes
    rollout_tokens = rollouts * lengths.mean_response
    scored = rollouts * (lengths.mean_prompt + lengths.mean_response) if case.vllm else 0.0
    logged = rollouts + steps * replayed_a_step(settings)
    log_row = ROW_BYTES + lengths.mean_response * sum(log_bytes_a_token(case).values())
    return Volume(
        rollouts=rollouts,
        rollout_tokens=rollout_tokens,
        most_rollout_tokens=rollouts * settings.rollout.max_new_tokens,
        update_tokens=update_tokens,
        scored_tokens=scored,
        validation_tokens=samples * test_length(case),
        stored=stored,
        stored_values=stored * BUFFER_TOKEN * lengths.mean_response,
        buffer_bytes=stored * one,
        log_bytes=logged * log_row,
        checkpoint_bytes=KEEP * (state + stored * one),
        final_bytes=models * case.weight_bytes * parameters,
    )


def test_length(case: Case) -> float:
    """Mean tokens of an answer at a test: as in training, or the tests' limit if that is less."""
    return min(case.lengths.mean_response, case.settings.evaluation.max_new_tokens)


def replayed_a_step(settings: RunSettings) -> int:
    """Stored trajectories that take a rollout's place in a step, once replay is on and can fill."""
    experience, join = settings.experience, settings.join
    if experience.replay != "trajectory" or join.place != "instead" or join.when != "always":
        return 0
    share = experience.share if join.visit == "drawn" else 1.0
    return floor(share * settings.batch.questions) * join.count


def log_bytes_a_token(case: Case) -> Mapping[str, float]:
    """Bytes a token of what grows with tokens, by column."""
    share = case.settings.log.token_floats_share
    return {
        "tokens.token_ids": ceil(log2(case.shape.vocab_size)) / 8,
        "tokens.behaviour_logprobs": FLOAT_BYTES,
        "tokens.logprobs": share * FLOAT_BYTES,
        "tokens.entropies": share * FLOAT_BYTES,
        "trajectories.response": TEXT_BYTES,
    }


def measured_log_bytes(log: Path) -> dict[str, float]:
    """Bytes of every column of the tables `tokens` and `trajectories` of a real log, compressed."""
    sizes: dict[str, float] = defaultdict(float)
    for part in live_parts(log):
        if part.table not in ("tokens", "trajectories"):
            continue
        meta = pq.read_metadata(log / part.path)
        for group in range(meta.num_row_groups):
            for index in range(meta.num_columns):
                column = meta.row_group(group).column(index)
                name = f"{part.table}.{column.path_in_schema.split('.')[0]}"
                sizes[name] += column.total_compressed_size
    return dict(sizes)


def questions_in(split: int | DataSet, rows: Mapping[str, int | None]) -> int | None:
    """Questions of a split; None where nothing says how many its data set has."""
    if isinstance(split, int):
        return split
    if split.limit is not None:
        return split.limit
    return rows.get(split.dataset)


def test_samples(settings: RunSettings, rows: Mapping[str, int | None]) -> tuple[int, list[str]]:
    """Answers that one test of a model takes, and the benchmarks whose size is not known."""
    total, unknown = 0, []
    for name, split in settings.questions.tests.items():
        own = split.samples if isinstance(split, Benchmark) else None
        count = questions_in(split, rows)
        if count is None:
            unknown.append(name)
        total += (count or 0) * (own or settings.evaluation.test_samples)
    return total, unknown


def hours(case: Case, volume: Volume, rates: Rates) -> dict[str, float]:
    """Hours of a run by part. A forward is taken for a third of an update, token for token."""
    many = case.processes * 3600
    return {
        "rollout": volume.rollout_tokens / rates.rollout / many,
        "scoring": volume.scored_tokens / (3 * rates.update) / many,
        "update": volume.update_tokens / rates.update / many,
        "validation": volume.validation_tokens / rates.rollout / many,
    }
