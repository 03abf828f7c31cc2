"""Advantages, importance ratios, clip, shaping, the loss: pure functions over tensors.

Every arm shares every line; settings choose (`exgrpo.settings.Objective`). Paper section 4.2,
equation 4; Dr.GRPO's group mean without standard deviation and constant-length normaliser.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from exgrpo.settings import Clip, Objective

STD_FLOOR = 1e-6  # [verl] added to a group's standard deviation


@dataclass(frozen=True)
class TokenBatch:
    """Flat per-token inputs of the loss, each of shape [tokens].

    logprobs: under the policy now, with gradient. denominator_logprobs: the ratio's denominator.
    previous_logprobs: under the policy before this step's update. reference_logprobs: under the
    reference policy, or None. advantages: its trajectory's. replayed: it belongs to a replayed
    trajectory. correction: see `sampler_correction`. share: what the token counts in the loss, see
    `token_shares`.
    """

    logprobs: Tensor
    denominator_logprobs: Tensor
    previous_logprobs: Tensor
    reference_logprobs: Tensor | None
    advantages: Tensor
    replayed: Tensor
    correction: Tensor
    share: Tensor


@dataclass(frozen=True)
class Surrogate:
    """Per-token results, each of shape [tokens].

    value: what is maximised. ratio: policy now / its denominator. weight: the factor of the
    advantage (the ratio, clipped or shaped) before the sampler's correction. clipped: the clip
    removed the token's gradient.
    """

    value: Tensor
    ratio: Tensor
    weight: Tensor
    clipped: Tensor


@dataclass(frozen=True)
class Divisor:
    """Sequences and tokens of an update, or of its fresh or replayed part where they are apart.

    Never of a micro-batch: the loss does not depend on how the update is cut.
    """

    sequences: int
    tokens: int


def group_advantages(rewards: Tensor, standardise: bool = False) -> Tensor:
    """Reward minus the mean of its group, [groups, places] -> the same shape.

    NaN marks a trajectory that is not in the group or could not be graded: it leaves the mean, and
    its own advantage is 0. standardise: GRPO's division by the standard deviation (n - 1, as in
    verl); Dr.GRPO, and so the paper, leaves it out. Equal rewards give 0 either way.
    """
    present = ~rewards.isnan()
    count = present.sum(-1, keepdim=True)
    centred = torch.nan_to_num(rewards - torch.nanmean(rewards, dim=-1, keepdim=True), nan=0.0)
    if not standardise:
        return centred
    deviation = (centred.square().sum(-1, keepdim=True) / (count - 1).clamp(min=1)).sqrt()
    return centred / (deviation + STD_FLOOR)


def advantages(rewards: Tensor, replayed: Tensor, objective: Objective) -> Tensor:
    """The advantage of every trajectory, [groups, places]; replayed: bool, the same shape.

    joint: the replayed trajectories count in the group's mean, as in the paper. apart: fresh and
    replayed ones are two groups (RePO).
    """
    if objective.baseline == "joint":
        return group_advantages(rewards, objective.standardise)
    parts = (torch.where(part, rewards, torch.nan) for part in (replayed, ~replayed))
    replayed_part, fresh_part = (group_advantages(part, objective.standardise) for part in parts)
    return replayed_part + fresh_part


def shape(ratio: Tensor, objective: Objective) -> Tensor:
    """f(w) of a replayed token: w / (w + beta), bounded by 1 (paper eq. 5), w, or constant * w."""
    match objective.shaping:
        case "ratio":
            return ratio / (ratio + objective.beta)
        case "constant":
            return objective.constant * ratio
        case "none":
            return ratio


def sampler_ratio(
    previous_logprobs: Tensor, behaviour_logprobs: Tensor, replayed: Tensor
) -> Tensor:
    """Trainer / sampler of every fresh token, before the update, [tokens]; 1 on a replayed one.

    Exactly 1 where the engine samples with the trainer's own forward. A replayed token has its
    behaviour policy in the ratio itself.
    """
    return torch.where(replayed, 0.0, previous_logprobs - behaviour_logprobs).exp()


def sampler_correction(ratio: Tensor, objective: Objective) -> Tensor:
    """The constant that a fresh token's objective is multiplied by, [tokens], from `sampler_ratio`.

    Truncated importance sampling: what is sampled too often counts less, and the other way round,
    up to `sampler_cap`. It has no gradient: both policies in it are fixed.
    """
    if objective.sampler_correction == "none":
        return torch.ones_like(ratio)
    return ratio.clamp(max=objective.sampler_cap)


def surrogate(batch: TokenBatch, objective: Objective, clip: Clip) -> Surrogate:
    """The per-token objective: shaped ratio on replayed tokens, ratio on fresh ones, maybe clipped.

    clip: on which tokens PPO's clip is. A replayed ratio is clipped before it is shaped.
    """
    ratio = torch.exp(batch.logprobs - batch.denominator_logprobs)
    bounded = ratio.clamp(1 - objective.clip_low, 1 + objective.clip_high)
    factor, bounded_factor = (
        torch.where(batch.replayed, shape(each, objective), each) for each in (ratio, bounded)
    )
    if clip == "none":
        clipped = torch.zeros_like(batch.replayed)
    else:
        clipped = bounded_factor * batch.advantages < factor * batch.advantages
        if clip == "fresh":
            clipped &= ~batch.replayed
    weight = torch.where(clipped, bounded_factor, factor)
    value = weight * batch.advantages * batch.correction
    return Surrogate(value, ratio.detach(), weight.detach(), clipped)


def token_shares(
    lengths: Sequence[int], objective: Objective, divisor: Divisor, longest: int
) -> list[float]:
    """What one token of each sequence counts in the loss, [sequences given].

    longest: the constant length that Dr.GRPO divides by (`max_new_tokens`).
    """
    match objective.normaliser:
        case "constant":
            return [1 / (divisor.sequences * longest) for _ in lengths]
        case "constant_sum":
            return [1 / longest for _ in lengths]
        case "sequence":
            return [1 / (divisor.sequences * length) for length in lengths]
        case "token":
            return [1 / divisor.tokens for _ in lengths]


def divergence(logprobs: Tensor, other: Tensor) -> Tensor:
    """Per-token estimate of KL(policy || other) from the tokens sampled: r - log r - 1 >= 0."""
    log_ratio = other - logprobs
    return log_ratio.exp() - log_ratio - 1


def loss(
    value: Tensor, batch: TokenBatch, entropies: Tensor, tokens: int, objective: Objective
) -> Tensor:
    """The part of an update's loss that one micro-batch adds; the parts sum to the whole.

    value: `Surrogate.value`; entropies: [tokens of the micro-batch]. tokens: of the whole update.
    """
    total = -(value * batch.share).sum()
    if objective.entropy_bonus:
        total = total - objective.entropy_bonus * entropies.sum() / tokens
    for weight, other in (
        (objective.kl_reference, batch.reference_logprobs),
        (objective.kl_previous, batch.previous_logprobs),
    ):
        if weight and other is not None:
            total = total + weight * (divergence(batch.logprobs, other) * batch.share).sum()
    return total


def has_penalty(objective: Objective) -> bool:
    """Whether a trajectory of advantage 0 has a gradient all the same."""
    penalties = (objective.entropy_bonus, objective.kl_reference, objective.kl_previous)
    return any(weight > 0 for weight in penalties)
