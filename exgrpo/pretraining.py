"""The base model of the built-in task: a small Llama with a real tokenizer, made from scratch.

It learns from flawed demonstrations (wrong steps, shortcuts), so that reinforcement learning has
something to mend. Saved in Hugging Face format like any other model.
"""

import random
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from exgrpo import chain
from exgrpo.policy import TokenSequence, micro_batches, save_policy, score_tokens
from exgrpo.settings import Pretraining

SPECIAL = ["<pad>", "<bos>", "<eos>"]
ORDINARY = [*"0123456789+-*=;", "\\boxed{", "}"]
POSITIONS = 256  # tokens that the model can take in
MICRO_BATCH_TOKENS = 1024  # padded tokens a forward: what is fastest on a CPU


def make_tokenizer() -> PreTrainedTokenizerFast:
    r"""One token a character, `\boxed{` one token, a beginning token put first."""
    vocabulary = {token: index for index, token in enumerate(SPECIAL + ORDINARY)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<pad>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"\\boxed\{|."), "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<bos> $A", special_tokens=[("<bos>", vocabulary["<bos>"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>"
    )


def make_model(settings: Pretraining, tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A freshly initialised Llama; its seed decides the weights."""
    torch.manual_seed(settings.seed)
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    ends |= {"pad_token_id": tokenizer.pad_token_id}
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=settings.width,
        intermediate_size=8 * settings.width // 3,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=POSITIONS,
        tie_word_embeddings=False,
        **ends,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=True, **ends)
    return model


def pretrain(settings: Pretraining, folder: Path, progress: Callable[[str], None]) -> None:
    """Train on demonstrations of levels 1 .. max_level and save model and tokenizer to `folder`."""
    rng = random.Random(f"pretraining-{settings.seed}")
    tokenizer = make_tokenizer()
    model = make_model(settings, tokenizer)
    optimiser = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.01)
    warm_up = max(1, settings.steps // 20)
    schedule = torch.optim.lr_scheduler.SequentialLR(
        optimiser,
        [
            torch.optim.lr_scheduler.LinearLR(optimiser, 0.05, 1.0, warm_up),
            torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, settings.steps - warm_up),
        ],
        [warm_up],
    )
    for step in range(1, settings.steps + 1):
        batch = _batch(settings, tokenizer, rng)
        tokens = sum(len(sequence.response_ids) for sequence in batch)
        loss = 0.0
        for indices in micro_batches(batch, MICRO_BATCH_TOKENS):
            scores = score_tokens(model, [batch[index] for index in indices], temperature=1.0)
            part = -scores.logprobs.sum() / tokens
            part.backward()
            loss += part.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        optimiser.zero_grad()
        if step % 50 == 0 or step == settings.steps:
            progress(f"base model: step {step}/{settings.steps}  loss {loss:.3f}")
    save_policy(model, tokenizer, folder)


def _batch(
    settings: Pretraining, tokenizer: PreTrainedTokenizerFast, rng: random.Random
) -> list[TokenSequence]:
    """Questions, each with a demonstration that ends with the end token."""
    sequences = []
    for _ in range(settings.batch):
        text = chain.draw(rng.randint(1, settings.max_level), rng)
        response = chain.demonstrate(
            text, rng, settings.wrong_step_rate, settings.shortcut_rate, settings.shortcut_knowledge
        )
        if settings.unboxed_rate and rng.random() < settings.unboxed_rate:
            response = chain.without_box(response)
        prompt = tokenizer(text).input_ids
        answer = [
            *tokenizer(response, add_special_tokens=False).input_ids,
            tokenizer.eos_token_id,
        ]
        sequences.append(TokenSequence(prompt, answer))
    return sequences
