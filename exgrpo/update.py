"""The policy update: micro-batches, one global denominator an update, guarded optimiser steps."""

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn.utils import get_total_norm
from transformers import PreTrainedModel

from exgrpo import objective
from exgrpo.batch import Row
from exgrpo.hardware import CPU, Hardware
from exgrpo.objective import Divisor, Surrogate, TokenBatch
from exgrpo.policy import TokenScores, micro_batches, score_tokens
from exgrpo.processes import ALONE, Processes
from exgrpo.scorer import FILLER
from exgrpo.settings import Clip, RunSettings
from exgrpo.weights import whole


@dataclass(frozen=True, eq=False)
class RowUpdate:
    """What the last update saw of one trajectory: log-probabilities [tokens], ratios, weights.

    ess: effective sample size of the tokens' ratios or weights as a share of the tokens,
    (sum w)^2 / (n sum w^2): 1 when all are equal.
    """

    logprobs: np.ndarray
    ratio_mean: float
    ratio_min: float
    ratio_max: float
    ratio_ess: float
    weight_mean: float
    weight_min: float
    weight_max: float
    weight_ess: float
    clipped_share: float


@dataclass(frozen=True)
class Norms:
    """Gradient norms before clipping: of the whole, and of fresh and of replayed tokens alone."""

    total: float
    fresh: float
    replayed: float


class NonFiniteError(Exception):
    """What is NaN or infinite, so that going on would learn from it or save it."""


@dataclass(frozen=True)
class UpdateReport:
    """One loss and one Norms an optimiser step; a RowUpdate for each row with a gradient, by id."""

    losses: list[float] = field(default_factory=list)
    norms: list[Norms] = field(default_factory=list)
    skipped: int = 0
    rows: dict[str, RowUpdate] = field(default_factory=dict)


@dataclass(frozen=True)
class Learner:
    """What the update works on. reference: the frozen policy of the KL, or None."""

    model: torch.nn.Module  # a Scorer, as Accelerate wraps it
    optimiser: torch.optim.Optimizer
    accelerator: Accelerator
    reference: PreTrainedModel | None = None
    processes: Processes = ALONE
    hardware: Hardware = CPU


def update_policy(
    rows: Sequence[Row], settings: RunSettings, clip: Clip, learner: Learner
) -> UpdateReport:
    """Split the batch by groups into `batch.updates` parts and step the optimiser once for each.

    Whole groups stay together; every part has fresh and experiential groups; `batch.passes` times
    over. An update with a non-finite or huge gradient is left out and counted.
    """
    losses: list[float] = []
    norms: list[Norms] = []
    seen: dict[str, RowUpdate] = {}
    skipped = 0
    trained = [row for row in rows if row.trained]
    groups = sorted({row.group for row in trained})
    part_of = {group: index % settings.batch.updates for index, group in enumerate(groups)}
    parts = [
        [row for row in trained if part_of[row.group] == part]
        for part in range(settings.batch.updates)
    ]
    for chosen in [part for part in parts if part] * settings.batch.passes:
        value, norm = _gradient(chosen, settings, clip, learner, seen)
        losses.append(value)
        if math.isfinite(value) and _usable(norm.total, settings.optimiser.grad_skip):
            learner.optimiser.step()
            norms.append(norm)
        else:
            skipped += 1
    return UpdateReport(losses, norms, skipped, seen)


def require_finite(report: UpdateReport, entropy: float, model: torch.nn.Module) -> None:
    """NonFiniteError when the losses, the sampled tokens' mean entropy or the weights are broken.

    A broken policy samples no right answer: without signal its loss is 0, but its entropy NaN.
    """
    values = {f"the loss of update {number}": loss for number, loss in enumerate(report.losses, 1)}
    values["the mean entropy of the sampled tokens"] = entropy
    values["the norm of the weights"] = norm_of(list(model.parameters()))
    for what, value in values.items():
        if not math.isfinite(value):
            raise NonFiniteError(f"{what} is {value}")


def _usable(norm: float, limit: float | None) -> bool:
    return math.isfinite(norm) and (limit is None or norm <= limit)


def _gradient(
    rows: list[Row],
    settings: RunSettings,
    clip: Clip,
    learner: Learner,
    seen: dict[str, RowUpdate],
) -> tuple[float, Norms]:
    """Leave one update's clipped gradient in the weights; fills `seen`.

    Replayed and fresh rows go backward one after the other, so that each part's norm is known.
    """
    weights = list(learner.model.parameters())

    def gradient(part: list[Row]) -> tuple[float, list[Tensor]]:
        for weight in weights:
            weight.grad = torch.zeros_like(weight)  # zero, not None, where no row has signal
        value = _backward(part, rows, settings, clip, learner, seen)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        for each in gradients if learner.processes.count > 1 else ():
            each *= learner.processes.count  # their mean over the processes: the loss is a sum
        return value, gradients

    replayed = [row for row in rows if row.replayed]
    loss_replayed, held = gradient(replayed) if replayed else (0.0, [])
    loss_fresh, gradients = gradient([row for row in rows if not row.replayed])
    norm_replayed, norm_fresh = (norm_of(part) for part in (held, gradients))
    for total, part in zip(gradients, held, strict=False):  # held is empty where none is replayed
        total += part
    bound = settings.optimiser.grad_clip
    norm = learner.accelerator.clip_grad_norm_(weights, math.inf if bound is None else bound)
    return loss_replayed + loss_fresh, Norms(float(whole(norm)), norm_fresh, norm_replayed)


def norm_of(tensors: Sequence[Tensor]) -> float:
    """The norm of all of them together, wherever their shards are."""
    return float(whole(get_total_norm(list(tensors))))


def _backward(
    part: list[Row],
    rows: list[Row],
    settings: RunSettings,
    clip: Clip,
    learner: Learner,
    seen: dict[str, RowUpdate],
) -> float:
    """Backward over a part of one update's rows; returns its loss and fills `seen` by row id.

    Its micro-batches are dealt out among the processes.
    """
    tokens = _tokens(rows)
    # RePO's J_on + J_off: each part is a mean of its own.
    divided_by = part if settings.objective.baseline == "apart" else rows
    divisor = Divisor(len(divided_by), _tokens(divided_by))
    # Without a penalty a row of advantage 0 adds exactly 0 to loss and gradient.
    penalised = objective.has_penalty(settings.objective)
    learning = [row for row in part if penalised or row.advantage != 0]
    total, own = 0.0, {}
    budget = learner.hardware.token_budget(settings.batch.micro_batch_tokens)
    batches = list(micro_batches([row.sequence for row in learning], budget))
    turns = list(learner.processes.deal(batches, nothing=[]))
    for turn, indices in enumerate(turns, 1):
        batch = [learning[index] for index in indices]
        with _averaging(learner, last=turn == len(turns)):
            scores = TokenScores(
                *learner.model(
                    [row.sequence for row in batch] or [FILLER],
                    settings.rollout.temperature,
                    settings.objective.entropy_bonus > 0,
                )
            )
            if not batch:
                learner.accelerator.backward(0.0 * scores.logprobs.sum())
                continue
            inputs = token_batch(batch, scores, settings, divisor, learner.reference)
            result = objective.surrogate(inputs, settings.objective, clip)
            value = objective.loss(
                result.value, inputs, scores.entropies, tokens, settings.objective
            )
            learner.accelerator.backward(value)
        total += value.item()
        own.update(_per_row(batch, scores, result))
    shares = learner.processes.gather((total, own))
    for _, rows_seen in shares:
        seen.update(rows_seen)
    return sum(share for share, _ in shares)


def _averaging(learner: Learner, last: bool) -> AbstractContextManager[None]:
    """Replicas average their gradients once, with the last backward; shards every time."""
    if last or learner.hardware.sharded:
        return nullcontext()
    waiting: AbstractContextManager[None] = learner.accelerator.no_sync(learner.model)
    return waiting


def _tokens(rows: Sequence[Row]) -> int:
    return sum(len(row.sequence.response_ids) for row in rows)


def token_batch(
    rows: Sequence[Row],
    scores: TokenScores,
    settings: RunSettings,
    divisor: Divisor,
    reference: PreTrainedModel | None,
) -> TokenBatch:
    """The flat inputs of the loss for rows and their scores."""
    device, dtype = scores.logprobs.device, scores.logprobs.dtype
    lengths = [len(row.sequence.response_ids) for row in rows]
    recorded = settings.objective.denominator == "recorded"
    shares = objective.token_shares(
        lengths, settings.objective, divisor, settings.rollout.max_new_tokens
    )

    def spread(values: Sequence[float | bool], kind: torch.dtype = dtype) -> Tensor:
        counts = torch.tensor(lengths, device=device)
        return torch.tensor(values, dtype=kind, device=device).repeat_interleave(counts)

    def joined(arrays: Iterator[np.ndarray]) -> Tensor:
        return torch.from_numpy(np.concatenate(list(arrays))).to(device, dtype)

    behaviour = joined(row.behaviour_logprobs for row in rows)
    previous = joined(row.previous_logprobs for row in rows)
    replayed = spread([row.replayed for row in rows], torch.bool)
    ratio = objective.sampler_ratio(previous, behaviour, replayed)
    return TokenBatch(
        logprobs=scores.logprobs,
        denominator_logprobs=torch.where(replayed & recorded, behaviour, previous),
        previous_logprobs=previous,
        reference_logprobs=_reference_logprobs(rows, settings, reference),
        advantages=spread([row.advantage for row in rows]),
        replayed=replayed,
        correction=objective.sampler_correction(ratio, settings.objective),
        share=spread(shares),
    )


@torch.no_grad()
def _reference_logprobs(
    rows: Sequence[Row], settings: RunSettings, reference: PreTrainedModel | None
) -> Tensor | None:
    if reference is None:
        return None
    sequences = [row.sequence for row in rows]
    return score_tokens(reference, sequences, settings.rollout.temperature).logprobs


def _per_row(rows: Sequence[Row], scores: TokenScores, result: Surrogate) -> dict[str, RowUpdate]:
    lengths = np.array([len(row.sequence.response_ids) for row in rows])
    starts = lengths.cumsum() - lengths
    ratio, weight, clipped = (
        each.double().cpu().numpy() for each in (result.ratio, result.weight, result.clipped)
    )

    def mean(values: np.ndarray) -> np.ndarray:
        return np.add.reduceat(values, starts) / lengths

    columns = {
        "ratio_mean": mean(ratio),
        "ratio_min": np.minimum.reduceat(ratio, starts),
        "ratio_max": np.maximum.reduceat(ratio, starts),
        "ratio_ess": mean(ratio) ** 2 / mean(ratio**2),
        "weight_mean": mean(weight),
        "weight_min": np.minimum.reduceat(weight, starts),
        "weight_max": np.maximum.reduceat(weight, starts),
        "weight_ess": mean(weight) ** 2 / mean(weight**2),
        "clipped_share": mean(clipped),
    }
    logprobs = np.split(scores.logprobs.detach().cpu().numpy(), starts[1:])
    return {
        row.id: RowUpdate(now, **{name: float(values[index]) for name, values in columns.items()})
        for index, (row, now) in enumerate(zip(rows, logprobs, strict=True))
    }
