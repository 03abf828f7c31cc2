"""The first forward of a rollout: every question once, its cache shared by its rollouts."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedModel


@dataclass(frozen=True)
class Prefill:
    """What the forward over the prompts leaves, one row a prompt, or a rollout after `of`.

    attention: [rows, width], 1 on the prompt, 0 on the padding to its left. logits: [rows,
    vocabulary], for the first token. keys, values: a layer's [rows, heads, width, size].
    """

    attention: Tensor
    logits: Tensor
    keys: list[Tensor]
    values: list[Tensor]

    def of(self, prompts: Sequence[int]) -> "Prefill":
        """One row for each of these prompt numbers, less the padding that none of them needs."""
        rows = torch.tensor(prompts, device=self.attention.device)
        width = int(self.attention[rows].sum(-1).max())
        return Prefill(
            self.attention[rows, -width:],
            self.logits[rows],
            [keys[:, :, -width:][rows] for keys in self.keys],
            [values[:, :, -width:][rows] for values in self.values],
        )


def prefill(model: PreTrainedModel, prompts: Sequence[list[int]]) -> Prefill:
    """One forward over the left-padded prompts."""
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
    layers = output.past_key_values.layers
    return Prefill(
        attention,
        output.logits[:, -1],
        [layer.keys for layer in layers],
        [layer.values for layer in layers],
    )


def with_room(prefilled: Tensor, room: int) -> Tensor:
    """[rows, heads, width, size] with `room` more places, not yet written, after `width`."""
    rows, heads, width, size = prefilled.shape
    buffer = prefilled.new_empty(rows, heads, width + room, size)
    buffer[:, :, :width] = prefilled
    return buffer
