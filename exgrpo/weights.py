"""Weights and the optimiser's averages one by one, whole, wherever they are kept.

What is read and filled here looks the same whether a process holds all of it or a shard, so a
checkpoint of one kind of hardware is gone on from on another. Where weights are sharded, all
processes must call these functions, and walk through what they yield.
"""

from collections.abc import Iterator, Mapping

import torch
from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor
from transformers import PreTrainedModel

_STEPS = "step"  # AdamW's count of its steps: one number, never sharded


def full_weights(policy: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Name and value of each parameter, tied ones once; of sharded ones all processes call this."""
    for name, weight in policy.named_parameters():
        yield name, whole(weight.detach())


def whole(value: Tensor) -> Tensor:
    """All of a tensor, on the device where its shard is."""
    return value.full_tensor() if isinstance(value, DTensor) else value


@torch.no_grad()
def fill_weights(policy: PreTrainedModel, values: Mapping[str, Tensor]) -> None:
    """Give each parameter its value; every process holds all of `values`."""
    for name, weight in policy.named_parameters():
        weight.copy_(_placed(values[name], weight))


@torch.no_grad()
def copy_weights(policy: PreTrainedModel, replica: PreTrainedModel) -> None:
    """Give a model of the same shape, held whole, the policy's weights."""
    own = dict(replica.named_parameters())
    for name, value in full_weights(policy):
        own[name].copy_(value)


def full_averages(
    policy: PreTrainedModel, optimiser: torch.optim.Optimizer
) -> Iterator[tuple[str, Tensor]]:
    """What the optimiser keeps of each parameter, as `<parameter>/<what>`; nothing before a step.

    Its settings are the run's, so they are not part of it.
    """
    for name, weight in policy.named_parameters():
        for what, value in optimiser.state.get(weight, {}).items():
            yield f"{name}/{what}", whole(value)


def fill_averages(
    policy: PreTrainedModel, optimiser: torch.optim.Optimizer, values: Mapping[str, Tensor]
) -> None:
    """The opposite of `full_averages`, for an optimiser that has not stepped yet."""
    weights = dict(policy.named_parameters())
    for key, value in values.items():
        name, _, what = key.rpartition("/")
        weight = weights[name]
        own = value.clone() if what == _STEPS else _placed(value, weight).clone()
        optimiser.state[weight][what] = own


def _placed(value: Tensor, like: Tensor) -> Tensor:
    """A whole tensor where and how `like` is kept; of a sharded one, this process's own part."""
    value = value.to(like.device)
    if not isinstance(like, DTensor):
        return value
    # No source: every process has the whole, so nothing needs to be sent.
    return distribute_tensor(value, like.device_mesh, like.placements, src_data_rank=None)
