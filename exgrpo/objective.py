"""Advantages, importance ratios, clip, shaping, the loss: pure functions over tensors.

Baseline and ExGRPO share every line; an arm only sets `clip` to None and gives replayed rows.
Paper section 4.2, equation 4; Dr.GRPO's group mean without standard deviation and constant-length
normaliser.
"""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class TokenBatch:
    """Flat per-token inputs of the loss, each of shape [tokens].

    logprobs: under the policy now, with gradient. behaviour_logprobs: under the policy that
    sampled the token (for a replayed one as recorded at its birth). advantages: its trajectory's.
    replayed: it belongs to a replayed trajectory.
    """

    logprobs: Tensor
    behaviour_logprobs: Tensor
    advantages: Tensor
    replayed: Tensor


@dataclass(frozen=True)
class Surrogate:
    """Per-token results, each of shape [tokens].

    value: what is maximised. ratio: policy now / behaviour policy. weight: the factor of the
    advantage (the ratio, clipped or shaped). clipped: the clip removed the token's gradient.
    """

    value: Tensor
    ratio: Tensor
    weight: Tensor
    clipped: Tensor


def group_advantages(rewards: Tensor) -> Tensor:
    """Reward minus the mean of its group, [groups, K] -> [groups, K] (Dr.GRPO: no deviation).

    The replayed trajectory counts in the mean. NaN marks a trajectory that could not be graded:
    it leaves the group, and its own advantage is 0.
    """
    mean = torch.nanmean(rewards, dim=-1, keepdim=True)
    return torch.nan_to_num(rewards - mean, nan=0.0)


def shape(ratio: Tensor, beta: float) -> Tensor:
    """f(w) = w / (w + beta): bounded by 1, steepest where the ratio is small (paper eq. 5)."""
    return ratio / (ratio + beta)


def surrogate(batch: TokenBatch, clip: float | None, beta: float) -> Surrogate:
    """The per-token objective: shaped ratio on replayed tokens, (clipped) ratio on fresh ones.

    clip: half-width of the PPO clip on fresh tokens, or None to leave it out.
    """
    ratio = torch.exp(batch.logprobs - batch.behaviour_logprobs)
    shaped = shape(ratio, beta)
    bounded = ratio if clip is None else ratio.clamp(1 - clip, 1 + clip)
    fresh_value = torch.minimum(ratio * batch.advantages, bounded * batch.advantages)
    clipped = ~batch.replayed & (bounded * batch.advantages < ratio * batch.advantages)
    value = torch.where(batch.replayed, shaped * batch.advantages, fresh_value)
    weight = torch.where(batch.replayed, shaped, torch.where(clipped, bounded, ratio))
    return Surrogate(value, ratio.detach(), weight.detach(), clipped)


def loss(
    value: Tensor,
    entropies: Tensor,
    sequences: int,
    normaliser: int,
    tokens: int,
    entropy_bonus: float,
) -> Tensor:
    """The part of an update's loss that one micro-batch adds; the parts sum to the whole.

    value, entropies: [tokens of the micro-batch]. sequences, tokens: of the whole update.
    normaliser: the constant length that every response is divided by (Dr.GRPO).
    """
    objective = value.sum() / (sequences * normaliser)
    return -objective - entropy_bonus * entropies.sum() / tokens
