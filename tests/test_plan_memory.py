"""The memory plan against what autograd keeps, and against the memory of real updates."""

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from plan_memory import MODELS, measure
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from exgrpo.hardware import Hardware
from exgrpo.plan.memory import (
    Case,
    Lengths,
    layer_activation_bytes,
    logits_bytes,
    sequences_at_once,
    training_memory,
)
from exgrpo.plan.shape import shape_from
from exgrpo.policy import HEAD_LOGITS
from exgrpo.settings import RunSettings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
TOLERANCE = 0.25  # of what an update was measured to take
ROWS, LENGTH = 2, 50
SIZES: dict[str, Any] = {
    "vocab_size": 101,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": LENGTH,
}
KINDS = {"llama": (LlamaConfig, LlamaForCausalLM), "qwen2": (Qwen2Config, Qwen2ForCausalLM)}


def case(layers: int = 1, hardware: Hardware | None = None, **sections: dict[str, Any]) -> Case:
    settings = RunSettings.model_validate({"study": "s", "arm": "a", "seed": 0, **sections})
    shape = shape_from({"model_type": "llama", "num_hidden_layers": layers, **SIZES})
    place = hardware or Hardware(title="one process")
    return Case(shape, settings, place, Lengths(10, 40, 10, 40))


def kept_by_autograd(kind: str, layers: int, mixed: bool) -> int:
    """Bytes of all storages that a forward keeps for backward, weights apart, their casts too."""
    make_config, make_model = KINDS[kind]
    model = make_model(make_config(num_hidden_layers=layers, **SIZES)).eval()
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    casts = {tuple(each.shape) for each in model.parameters() if each.ndim == 2}
    storages: dict[int, torch.UntypedStorage] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        of_a_weight = tuple(tensor.shape) in casts or tuple(tensor.shape)[::-1] in casts
        if storage.data_ptr() not in weights and not of_a_weight:
            storages[storage.data_ptr()] = storage
        return tensor

    ids = torch.randint(SIZES["vocab_size"], (ROWS, LENGTH))
    with (
        torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept),
        torch.autocast("cpu", torch.bfloat16, enabled=mixed),
    ):
        model.base_model(input_ids=ids, use_cache=False)
    return sum(storage.nbytes() for storage in storages.values())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_layer_keeps_exactly_what_autograd_keeps(kind: str, dtype: str) -> None:
    two, three = (kept_by_autograd(kind, layers, dtype == "bfloat16") for layers in (2, 3))
    planned = layer_activation_bytes(case(training={"dtype": dtype}))
    assert three - two == ROWS * LENGTH * planned


def test_logits_are_bounded_by_the_chunk() -> None:
    """Traps 57 and 58, as planned; the next test holds the trainer to it."""
    little, large, larger = (logits_bytes(case(), tokens) for tokens in (10, 10**7, 10**8))
    assert little < large < 6 * 4 * HEAD_LOGITS
    assert larger < 1.05 * large


def peak_of_the_head(way: str, tokens: int) -> float:
    """MiB that log-probabilities, entropies and their backward take, in a process of its own."""
    code = (
        "import sys; sys.path.insert(0, 'benchmarks'); import memory; from exgrpo import policy; "
        "memory.VOCABULARY, policy.HEAD_LOGITS = 20_000, 2**22; "
        f"memory.child({way!r}, {tokens}, 1, 1)"
    )
    alone = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=os.environ | alone,
    )
    return float(done.stdout.split()[3].replace(",", ""))


def test_the_head_takes_no_more_memory_for_more_tokens_with_gradient() -> None:
    """Traps 57 and 58: measured over forward and backward, beside the plain way."""
    few, many = (peak_of_the_head("ours", tokens) for tokens in (200, 1000))
    assert many < 1.3 * few
    assert peak_of_the_head("plain", 1000) > 3 * many


@pytest.mark.parametrize("recomputed", [False, True])
@pytest.mark.parametrize("model", MODELS)
def test_an_update_takes_what_was_planned(model: str, recomputed: bool) -> None:
    told = measure(model, recomputed)
    assert told.ratio == pytest.approx(1, abs=TOLERANCE), told


def bytes_of(one: Case) -> dict[str, float]:
    memory = training_memory(one)
    items = [*memory.always.items, *(item for phase in memory.phases for item in phase.items)]
    return {item.what: item.bytes for item in items}


def test_sharding_divides_what_is_spread_and_nothing_else() -> None:
    many = {"gpus": 4, "processes": 4, "gpu_memory": 80.0, "title": "four"}
    replicated, sharded = (
        case(4, Hardware(**many, weights=weights), rollout={"engine": "vllm"})
        for weights in ("replicated", "sharded")
    )
    number = sharded.shape.parameters
    whole, spread = bytes_of(replicated), bytes_of(sharded)
    assert whole["the weights, 32 bits each"] == whole["the gradients"] == 4 * number
    assert spread["1/4 of the weights, 32 bits each"] == number
    assert spread["1/4 of AdamW's two moments"] == 2 * number
    assert whole["buckets in which gradients are averaged"] == 4 * number
    same = [what for what in whole if what.startswith(("activations", "logits"))]
    assert same and all(whole[what] == spread[what] for what in same)


def test_what_is_there_only_where_it_is_needed() -> None:
    plain, replaying, penalised = (
        set(bytes_of(one))
        for one in (
            case(),
            case(experience={"replay": "trajectory"}),
            case(objective={"kl_reference": 0.1}),
        )
    )
    assert replaying - plain == {"gradients of replayed tokens, held apart"}
    assert penalised - plain == {"the KL's reference model, whole"}


def test_the_peak_is_of_the_greater_phase_not_of_their_sum() -> None:
    memory = training_memory(case(4, experience={"replay": "trajectory"}))
    phases = [phase.bytes for phase in memory.phases]
    assert memory.peak == memory.always.bytes + max(phases)
    assert sum(bytes > 0 for bytes in phases) == 3


def test_a_sequence_longer_than_the_budget_comes_alone() -> None:
    short = case(batch={"micro_batch_tokens": 20})
    assert short.micro_batch_tokens == short.lengths.longest == 50
    fewer = Hardware(title="less", micro_batch_tokens=200)
    assert case(batch={"micro_batch_tokens": 300}).micro_batch_tokens == 300
    assert case(hardware=fewer, batch={"micro_batch_tokens": 300}).micro_batch_tokens == 200


def test_the_engine_has_room_for_as_many_sequences_as_its_share_holds() -> None:
    place = Hardware(title="one", gpus=1, gpu_memory=0.001, engine_memory=0.5)
    one = case(1, place, rollout={"engine": "vllm", "engine_dtype": "float32"})
    sequence = 4 * one.shape.cache_values * 50
    room = 0.9 * 0.5 * 1e6 - 4 * one.shape.parameters
    assert sequences_at_once(one) == room // sequence > 0
    smaller = dataclasses.replace(one, lengths=Lengths(10, 90, 10, 90))
    assert sequences_at_once(smaller) == room // (2 * sequence)
