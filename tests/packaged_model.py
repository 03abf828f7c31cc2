"""A tiny model inside a wheel, as pip finds it: a random Llama written as a GGUF file."""

import hashlib
import zipfile
from pathlib import Path

import torch
from chat_tokenizers import CHAT_ML, CHAT_ML_TOKENS
from gguf import GGUFWriter, TokenType
from tokenizers import pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM

from exgrpo.settings import ModelPackage

FILE = "tiny_weights/tiny.gguf"
WIDTH, HEADS, KV_HEADS, LAYERS, HIDDEN = 32, 4, 2, 2, 64
# The special tokens come first, as in the real one.
TOKENS = [*CHAT_ML_TOKENS, *sorted(pre_tokenizers.ByteLevel.alphabet()), "an"]


def tiny_llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(TOKENS), hidden_size=WIDTH, intermediate_size=HIDDEN,
        num_hidden_layers=LAYERS, num_attention_heads=HEADS, num_key_value_heads=KV_HEADS,
        max_position_embeddings=128, tie_word_embeddings=True, rms_norm_eps=1e-5,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def write_gguf(model: LlamaForCausalLM, path: Path) -> None:
    """Write model and tokenizer under the names, and with the head order, of llama.cpp."""
    writer = GGUFWriter(path, "llama")
    writer.add_name("tiny")
    writer.add_context_length(model.config.max_position_embeddings)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(HIDDEN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    kinds = [TokenType.CONTROL] * len(CHAT_ML_TOKENS)
    writer.add_token_types(kinds + [TokenType.NORMAL] * (len(TOKENS) - len(kinds)))
    writer.add_token_merges(["a n"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_pad_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_chat_template(CHAT_ML)
    weights = model.state_dict()
    tensors = {
        "token_embd.weight": weights["model.embed_tokens.weight"],
        "output_norm.weight": weights["model.norm.weight"],
    }
    for layer in range(LAYERS):
        for ours, theirs in NAMES.items():
            weight = weights[f"model.layers.{layer}.{ours}.weight"]
            heads = {"attn_q": HEADS, "attn_k": KV_HEADS}.get(theirs)
            tensors[f"blk.{layer}.{theirs}.weight"] = _interleaved(weight, heads)
    for name, weight in tensors.items():
        writer.add_tensor(name, weight.contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def _interleaved(weight: torch.Tensor, heads: int | None) -> torch.Tensor:
    """llama.cpp rotates neighbouring rows of a head, transformers its two halves."""
    if heads is None:
        return weight
    return weight.reshape(heads, 2, -1, WIDTH).transpose(1, 2).reshape(weight.shape)


def write_wheel(content: bytes, folder: Path, version: str = "1.0") -> ModelPackage:
    """Put a wheel `tiny-weights` with this file into a folder, and name the file in it."""
    info = f"tiny_weights-{version}.dist-info"
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / f"tiny_weights-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(FILE, content)
        archive.writestr(
            f"{info}/METADATA",
            # What it needs is never fetched.
            f"Metadata-Version: 2.1\nName: tiny-weights\nVersion: {version}\n"
            "Requires-Dist: no-such-package-anywhere\n",
        )
        wheel = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        archive.writestr(f"{info}/WHEEL", wheel)
        archive.writestr(f"{info}/RECORD", "")
    return ModelPackage(
        name="tiny-weights", version=version, file=FILE, sha256=hashlib.sha256(content).hexdigest()
    )
