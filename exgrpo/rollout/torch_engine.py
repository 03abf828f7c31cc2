"""Rollouts with the training model itself, in plain torch.

A question is prefilled once and its cache shared by its n rollouts; the cache is preallocated;
finished rows leave the batch as it shrinks.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from exgrpo.policy import distribution, entropy
from exgrpo.rollout import Rollout, Sampling

SHRINK_BELOW = 0.75  # copy the cache to the living rows when fewer than this share are left


class PreallocatedLayer(DynamicLayer):
    """Keys and values of one layer in a buffer of full length, so that no step copies them."""

    def __init__(self, keys: Tensor, values: Tensor, room: int) -> None:
        """Start with prefilled keys and values [rows, heads, length, size] and `room` more."""
        super().__init__()
        self.lazy_initialization(keys, values)
        pad = (0, 0, 0, room)
        self.buffers = [torch.nn.functional.pad(each, pad) for each in (keys, values)]
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


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    counts: Sequence[int],
    sampling: Sampling,
    generator: torch.Generator,
) -> list[list[Rollout]]:
    """counts[i] rollouts of prompt i (token ids). The generator, on the CPU, decides every draw."""
    device = next(model.parameters()).device
    cache = DynamicCache()
    attention, logits, layers = _prefill(model, prompts, counts, sampling.max_new_tokens)
    cache.layers = list(layers)
    positions = attention.sum(-1)
    stops = torch.tensor(sampling.stop_ids, device=device)
    rows = torch.arange(sum(counts), device=device)  # which rollout each living row is
    tokens, logprobs, entropies = (
        torch.zeros(len(rows), sampling.max_new_tokens, dtype=dtype, device=device)
        for dtype in (torch.long, *2 * [torch.promote_types(logits.dtype, torch.float32)])
    )
    lengths = torch.full((len(rows),), sampling.max_new_tokens, device=device)
    stopped = torch.zeros(len(rows), dtype=torch.bool, device=device)
    for step in range(sampling.max_new_tokens):
        log_softmax = distribution(logits, sampling.temperature)
        drawn = _draw(log_softmax, generator)
        tokens[rows, step] = drawn
        logprobs[rows, step] = log_softmax.gather(-1, drawn[:, None])[:, 0]
        entropies[rows, step] = entropy(log_softmax)
        just_stopped = torch.isin(drawn, stops) & ~stopped[rows]
        lengths[rows[just_stopped]] = step + 1
        stopped[rows[just_stopped]] = True
        living = ~stopped[rows]
        if step + 1 == sampling.max_new_tokens or not living.any():
            break
        if living.float().mean() < SHRINK_BELOW:
            rows, drawn, positions, attention = (
                each[living] for each in (rows, drawn, positions, attention)
            )
            for layer in layers:
                layer.keep(living)
        attention = torch.cat([attention, attention.new_ones(len(rows), 1)], dim=-1)
        logits = model(
            input_ids=drawn[:, None],
            attention_mask=attention,
            position_ids=positions[:, None],
            past_key_values=cache,
        ).logits[:, -1]
        positions = positions + 1
    flat = [
        Rollout(ids[:length], logs[:length], ents[:length], "stop" if stop else "length")
        for ids, logs, ents, length, stop in zip(
            tokens.tolist(),
            logprobs.tolist(),
            entropies.tolist(),
            lengths.tolist(),
            stopped.tolist(),
            strict=True,
        )
    ]
    ends = list(itertools.accumulate(counts))
    return [flat[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _prefill(
    model: PreTrainedModel, prompts: Sequence[list[int]], counts: Sequence[int], room: int
) -> tuple[Tensor, Tensor, list[PreallocatedLayer]]:
    """One forward over the left-padded prompts; mask, last logits, caches, one row a rollout."""
    device = next(model.parameters()).device
    width = max(len(prompt) for prompt in prompts)
    ids = torch.zeros(len(prompts), width, dtype=torch.long)
    attention = torch.zeros(len(prompts), width, dtype=torch.long)
    for row, prompt in enumerate(prompts):
        ids[row, width - len(prompt) :] = torch.tensor(prompt)
        attention[row, width - len(prompt) :] = 1
    ids, attention = ids.to(device), attention.to(device)
    positions = (attention.cumsum(-1) - 1).clamp(min=0)
    output = model(input_ids=ids, attention_mask=attention, position_ids=positions, use_cache=True)
    of = torch.arange(len(prompts)).repeat_interleave(torch.tensor(counts)).to(device)
    layers = [
        PreallocatedLayer(layer.keys[of], layer.values[of], room)
        for layer in output.past_key_values.layers
    ]
    return attention[of], output.logits[of, -1], layers


def _draw(log_softmax: Tensor, generator: torch.Generator) -> Tensor:
    """One token a row, by the Gumbel-max trick: exact, and one draw for the whole batch."""
    uniform = torch.rand(log_softmax.shape, generator=generator, dtype=torch.float64)
    gumbel = -torch.log(-torch.log(uniform.clamp(min=1e-300)))
    return (log_softmax + gumbel.to(log_softmax.device, torch.float64)).argmax(-1)
