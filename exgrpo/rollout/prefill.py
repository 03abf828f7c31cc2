"""The first forward of a rollout: every question once, its cache shared by its rollouts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Prefill:
    """What the forward over the prompts leaves, one row a rollout.

    attention: [rows, width], 1 on the prompt, 0 on the padding to its left. logits: [rows,
    vocabulary], for the first token. keys, values: a layer's [rows, heads, width, size].
    """

    attention: Tensor
    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]


def prefill(model: PreTrainedModel, prompts: Sequence[list[int]], of: Sequence[int]) -> Prefill:
    """One forward over the left-padded prompts. of: the number of the prompt of each row."""
    device = next(model.parameters()).device
    width = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    attention = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        attention[row, width - len(prompt) :] = 1
    ids, attention = ids.to(device), attention.to(device)
    output = model(
        input_ids=ids,
        attention_mask=attention,
        position_ids=(attention.cumsum(-1) - 1).clamp(min=0),
        use_cache=True,
        logits_to_keep=1,
    )
    rows = torch.tensor(of, device=device)
    layers = output.past_key_values.layers
    return Prefill(
        attention[rows],
        output.logits[rows, -1],
        [layer.keys[rows] for layer in layers],
        [layer.values[rows] for layer in layers],
    )


def with_room(prefilled: Tensor, room: int) -> Tensor:
    """[rows, heads, width, size] with `room` more places, not yet written, after `width`."""
    rows, heads, width, size = prefilled.shape
    buffer = prefilled.new_empty(rows, heads, width + room, size)
    buffer[:, :, :width] = prefilled
    return buffer
