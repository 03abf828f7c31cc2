"""Decoding with a model's own forward, for any architecture that transformers knows."""

from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from exgrpo.rollout.prefill import Prefill, with_room


class PreallocatedLayer(DynamicLayer):
    """Keys and values of one layer in a buffer of full length, so that no step copies them."""

    def __init__(self, keys: Tensor, values: Tensor, room: int) -> None:
        """Start with prefilled keys and values [rows, heads, length, size] and `room` more."""
        super().__init__()
        self.lazy_initialization(keys, values)
        self.buffers = [with_room(each, room) for each in (keys, values)]
        self.length = keys.shape[-2]
        self._show()

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any
    ) -> tuple[Tensor, Tensor]:
        end = self.length + key_states.shape[-2]
        for buffer, states in zip(self.buffers, (key_states, value_states), strict=True):
            buffer[:, :, self.length : end] = states
        self.length = end
        return self._show()

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.buffers = [buffer[rows] for buffer in self.buffers]
        self._show()

    def _show(self) -> tuple[Tensor, Tensor]:
        keys, values = (buffer[:, :, : self.length] for buffer in self.buffers)
        self.keys, self.values = keys, values
        return keys, values


class PlainDecoder:
    """One token a row at a time, after a prefill."""

    def __init__(self, model: PreTrainedModel, prefill: Prefill, room: int) -> None:
        """room: most tokens that will follow."""
        self.model = model
        self.attention = prefill.attention
        self.layers = [
            PreallocatedLayer(keys, values, room)
            for keys, values in zip(prefill.keys, prefill.values, strict=True)
        ]
        self.cache = DynamicCache()
        self.cache.layers = list(self.layers)

    def step(self, tokens: Tensor) -> Tensor:
        """Logits [rows, vocabulary] after one more token a row, [rows]."""
        positions = self.attention.sum(-1, keepdim=True)
        one_more = self.attention.new_ones(len(tokens), 1)
        self.attention = torch.cat([self.attention, one_more], dim=-1)
        output = self.model(
            input_ids=tokens[:, None],
            attention_mask=self.attention,
            position_ids=positions,
            past_key_values=self.cache,
        )
        logits: Tensor = output.logits[:, -1]
        return logits

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.attention = self.attention[rows]
        for layer in self.layers:
            layer.keep(rows)
