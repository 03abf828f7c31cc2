"""The policy update: micro-batches, one global denominator an update, guarded optimiser steps."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from accelerate import Accelerator

from exgrpo import objective
from exgrpo.batch import Row
from exgrpo.objective import Surrogate, TokenBatch
from exgrpo.policy import TokenScores, micro_batches, score_tokens
from exgrpo.settings import RunSettings


@dataclass(frozen=True)
class RowUpdate:
    """What the update saw of one trajectory: its log-probabilities then, its ratios and weights."""

    logprobs: list[float]
    ratio_mean: float
    ratio_min: float
    ratio_max: float
    weight_mean: float
    clipped_share: float


@dataclass(frozen=True)
class UpdateReport:
    """Means over the updates of a step, and one RowUpdate a row, in the order of the rows."""

    loss: float
    grad_norm: float
    skipped: int
    rows: list[RowUpdate]


def update_policy(
    rows: Sequence[Row],
    settings: RunSettings,
    clip: float | None,
    model: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    accelerator: Accelerator,
) -> UpdateReport:
    """Split the batch by groups into `batch.updates` parts and step the optimiser once for each.

    Whole groups stay together; every part has fresh and experiential groups. An update with a
    non-finite or huge gradient is left out and counted.
    """
    losses, norms, skipped = [], [], 0
    seen: dict[str, RowUpdate] = {}
    for part in range(settings.batch.updates):
        chosen = [row for row in rows if row.group % settings.batch.updates == part]
        if not chosen:
            continue
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)  # zero, not None, where no row has signal
        losses.append(_accumulate(chosen, settings, clip, model, accelerator, seen))
        norm = float(accelerator.clip_grad_norm_(model.parameters(), settings.optimiser.grad_clip))
        if math.isfinite(norm) and norm <= settings.optimiser.grad_skip:
            optimiser.step()
            norms.append(norm)
        else:
            skipped += 1
    mean_norm = sum(norms) / len(norms) if norms else math.nan
    return UpdateReport(
        sum(losses) / len(losses), mean_norm, skipped, [seen[row.id] for row in rows]
    )


def _accumulate(
    rows: list[Row],
    settings: RunSettings,
    clip: float | None,
    model: torch.nn.Module,
    accelerator: Accelerator,
    seen: dict[str, RowUpdate],
) -> float:
    """Backward over one update's rows; returns its loss and fills `seen` by row id."""
    tokens = sum(len(row.sequence.response_ids) for row in rows)
    bonus = settings.objective.entropy_bonus
    total = 0.0
    for batch, learns in _batches(rows, settings.batch.micro_batch_tokens, bonus > 0):
        with torch.set_grad_enabled(learns):
            scores = score_tokens(
                model,
                [row.sequence for row in batch],
                settings.rollout.temperature,
                entropy_gradient=bonus > 0,
            )
            result = objective.surrogate(
                token_batch(batch, scores), clip, settings.objective.shaping
            )
            part = objective.loss(
                result.value,
                scores.entropies,
                sequences=len(rows),
                normaliser=settings.rollout.max_new_tokens,
                tokens=tokens,
                entropy_bonus=bonus,
            )
        if learns:
            accelerator.backward(part)
        total += part.item()
        seen.update(_per_row(batch, scores, result))
    return total


def _batches(rows: list[Row], budget: int, all_learn: bool) -> Iterator[tuple[list[Row], bool]]:
    """Micro-batches, and whether they have a gradient.

    Without an entropy bonus a row of advantage 0 has none: its forward is for the log alone, and
    its backward is left out.
    """
    learning = [row for row in rows if all_learn or row.advantage != 0]
    idle = [row for row in rows if not (all_learn or row.advantage != 0)]
    for part, learns in ((learning, True), (idle, False)):
        for indices in micro_batches([row.sequence for row in part], budget):
            yield [part[index] for index in indices], learns


def token_batch(rows: Sequence[Row], scores: TokenScores) -> TokenBatch:
    """The flat inputs of the loss for rows and their scores."""
    device = scores.logprobs.device
    lengths = torch.tensor([len(row.sequence.response_ids) for row in rows], device=device)
    return TokenBatch(
        logprobs=scores.logprobs,
        behaviour_logprobs=torch.tensor(
            [value for row in rows for value in row.behaviour_logprobs], device=device
        ),
        advantages=torch.tensor([row.advantage for row in rows], device=device).repeat_interleave(
            lengths
        ),
        replayed=torch.tensor([row.replayed for row in rows], device=device).repeat_interleave(
            lengths
        ),
    )


def _per_row(rows: Sequence[Row], scores: TokenScores, result: Surrogate) -> dict[str, RowUpdate]:
    columns = (
        scores.logprobs.detach(),
        result.ratio,
        result.weight,
        result.clipped.float(),
    )
    lengths = [len(row.sequence.response_ids) for row in rows]
    updates = {}
    for row, logprobs, ratio, weight, clipped in zip(
        rows, *(column.cpu().split(lengths) for column in columns), strict=True
    ):
        updates[row.id] = RowUpdate(
            logprobs=logprobs.tolist(),
            ratio_mean=ratio.mean().item(),
            ratio_min=ratio.min().item(),
            ratio_max=ratio.max().item(),
            weight_mean=weight.mean().item(),
            clipped_share=clipped.mean().item(),
        )
    return updates
