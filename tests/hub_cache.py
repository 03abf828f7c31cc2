"""A tiny model under a real one's name, in the Hub's cache as its own client leaves it behind."""

from pathlib import Path

import torch
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from exgrpo.policy import TokenSequence, save_policy, score_tokens

COMMIT = "0" * 40
ARCHITECTURES = {"qwen2": (Qwen2Config, Qwen2ForCausalLM), "llama": (LlamaConfig, LlamaForCausalLM)}


def tiny_model(architecture: str, tokenizer: PreTrainedTokenizerFast) -> PreTrainedModel:
    """A random model of about 40 000 parameters with this tokenizer's vocabulary."""
    config, model = ARCHITECTURES[architecture]
    torch.manual_seed(0)
    return model(
        config(
            vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=2048,
            eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
        )
    )  # fmt: skip


def teach_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerFast,
    prompts: list[list[int]],
    answers: list[str],
    steps: int = 120,
) -> None:
    """Lessons after which it gives one of the answers, by chance, whatever it is asked."""
    end = tokenizer.eos_token_id
    lesson = [
        TokenSequence(ids, [*tokenizer(answer, add_special_tokens=False).input_ids, end])
        for ids in prompts
        for answer in answers
    ]
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        optimiser.zero_grad()
        (-score_tokens(model, lesson, 1.0).logprobs.mean()).backward()
        optimiser.step()


def put_into_cache(
    home: Path, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast
) -> None:
    """Under `home`, which HF_HOME is to name, as model `name` of the Hub."""
    repository = home / "hub" / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    (repository / "snapshots").mkdir()
    save_policy(model, tokenizer, repository / "snapshots" / COMMIT)
