"""The policy's weights one by one, whole, wherever they are kept."""

from collections.abc import Iterator

from torch import Tensor
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel


def full_weights(policy: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Name and value of each parameter, tied ones once; of sharded ones all processes call this."""
    for name, weight in policy.named_parameters():
        value = weight.detach()
        yield name, value.full_tensor() if isinstance(value, DTensor) else value
