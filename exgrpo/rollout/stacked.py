"""Decoding for models of the Llama family with stacked projections: the same weights, fewer calls.

With a small model transformers' forward spends more time between the matrix products than in
them. Here a layer is two dozen tensor operations on one token a row; query, key and value are one
product, gate and up another. A test holds it equal to transformers' forward.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, linear, rms_norm, silu
from transformers import PreTrainedModel

from exgrpo.rollout.prefill import Prefill, with_room

FAMILY = {"llama", "mistral", "qwen2"}
ROTARY = {"default", "linear", "llama3", "yarn"}  # their angles do not depend on the length


class Projection(NamedTuple):
    """Weight [out, in] and bias [out] of linear layers that take the same input."""

    weight: Tensor
    bias: Tensor | None


class Layer(NamedTuple):
    """The weights of one decoder layer."""

    before_attention: Tensor
    query_key_value: Projection
    out: Projection
    before_mlp: Tensor
    gate_up: Projection
    down: Projection


def fits(model: PreTrainedModel) -> bool:
    """Whether `StackedDecoder` computes what this model's own forward does."""
    config = model.config
    return (
        config.model_type in FAMILY
        and config.hidden_act == "silu"
        and config.rope_parameters.get("rope_type") in ROTARY
        and getattr(config, "sliding_window", None) is None
    )


class StackedDecoder:
    """One token a row at a time, after a prefill."""

    def __init__(self, model: PreTrainedModel, prefill: Prefill, room: int) -> None:
        """Stack the weights as they are now; `room`: most tokens that will follow."""
        config = model.config
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.size = prefill.keys[0].shape[-1]
        self.eps = config.rms_norm_eps
        trunk: Any = model.base_model
        self.embedding = trunk.embed_tokens.weight
        self.layers = [_stack_layer(layer) for layer in trunk.layers]
        self.last_norm, self.head = trunk.norm.weight, _stack(model.get_output_embeddings())
        width = prefill.attention.shape[-1]
        self.length = width
        self.keys = [with_room(each, room) for each in prefill.keys]
        self.values = [with_room(each, room) for each in prefill.values]
        # 0 where a row may look, -inf on the padding before its prompt: [rows, 1, 1, length].
        mask = self.embedding.new_zeros(len(prefill.attention), 1, 1, width + room)
        mask[..., :width].masked_fill_(prefill.attention[:, None, None] == 0, -torch.inf)
        self.mask = mask
        self.positions = prefill.attention.sum(-1)
        every = torch.arange(width + room, device=mask.device)[None]
        cos, sin = trunk.rotary_emb(self.embedding, every)
        self.cos, self.sin = cos[0, :, None], sin[0, :, None]  # [position, 1, size]

    def step(self, tokens: Tensor) -> Tensor:
        """Logits [rows, vocabulary] after one more token a row, [rows]."""
        rows, size, heads, groups = len(tokens), self.size, self.heads, self.groups
        cos, sin = self.cos[self.positions], self.sin[self.positions]
        here, end = self.length, self.length + 1
        mask = self.mask[..., :end]
        hidden = embedding(tokens, self.embedding)
        for layer, keys, values in zip(self.layers, self.keys, self.values, strict=True):
            normed = self._norm(hidden, layer.before_attention)
            projected = linear(normed, *layer.query_key_value).view(rows, -1, size)
            turned = projected[:, : heads + groups]
            left, right = turned.chunk(2, -1)
            turned = turned * cos + torch.cat([-right, left], -1) * sin
            query = turned[:, :heads].view(rows, groups, heads // groups, size) * size**-0.5
            keys[:, :, here] = turned[:, heads:]
            values[:, :, here] = projected[:, heads + groups :]
            scores = query @ keys[:, :, :end].transpose(-1, -2) + mask
            seen = scores.softmax(-1) @ values[:, :, :end]
            hidden = hidden + linear(seen.view(rows, -1), *layer.out)
            normed = self._norm(hidden, layer.before_mlp)
            gate, up = linear(normed, *layer.gate_up).chunk(2, -1)
            hidden = hidden + linear(silu(gate) * up, *layer.down)
        self.length = end
        self.positions = self.positions + 1
        return linear(self._norm(hidden, self.last_norm), *self.head)

    def keep(self, rows: Tensor) -> None:
        """Drop all rows but these."""
        self.keys = [each[rows] for each in self.keys]
        self.values = [each[rows] for each in self.values]
        self.mask, self.positions = self.mask[rows], self.positions[rows]

    def _norm(self, hidden: Tensor, weight: Tensor) -> Tensor:
        # In float32 whatever the model's precision, as transformers does.
        return weight * rms_norm(hidden.float(), weight.shape, eps=self.eps).to(hidden.dtype)


def _stack_layer(layer: Any) -> Layer:
    attention, mlp = layer.self_attn, layer.mlp
    return Layer(
        layer.input_layernorm.weight,
        _stack(attention.q_proj, attention.k_proj, attention.v_proj),
        _stack(attention.o_proj),
        layer.post_attention_layernorm.weight,
        _stack(mlp.gate_proj, mlp.up_proj),
        _stack(mlp.down_proj),
    )


def _stack(*parts: Any) -> Projection:
    """The linear layers `parts`, which take the same input, as one."""
    # One alone is not copied: a large model is not held twice.
    weight = parts[0].weight if len(parts) == 1 else torch.cat([part.weight for part in parts])
    if torch.is_autocast_enabled(weight.device.type):  # cast once, not at every token
        weight = weight.to(torch.get_autocast_dtype(weight.device.type))
    biases = [part.bias for part in parts if part.bias is not None]
    return Projection(weight, torch.cat(biases) if biases else None)
