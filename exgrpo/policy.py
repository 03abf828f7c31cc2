"""The policy: a transformers model, its tokenizer, and one forward that gives what is needed.

Sequences are kept as lists of token ids and turned into right-padded micro-batches only for the
forward. Per-token results are flat: the response tokens of all sequences one after the other,
with no padding left, so that no later line needs a mask.
"""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.utils.checkpoint import checkpoint
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from exgrpo.errors import UserError
from exgrpo.grading import THINK_END
from exgrpo.records import sync
from exgrpo.room import positions_of

HEAD_LOGITS = 2**25  # most logits that are held at a time: 128 MiB in float32
THINK_TAGS = {"<think>", THINK_END}  # text, also where a tokenizer has them as special tokens


@dataclass(frozen=True)
class TokenSequence:
    """A prompt and a response as token ids; the response ends with the end token if it stopped."""

    prompt_ids: list[int]
    response_ids: list[int]

    def __len__(self) -> int:
        return len(self.prompt_ids) + len(self.response_ids)

    @property
    def whole(self) -> "TokenSequence":
        """The same tokens, all but the first as response: to score the prompt's tokens too."""
        return TokenSequence(self.prompt_ids[:1], self.prompt_ids[1:] + self.response_ids)


@dataclass(frozen=True)
class TokenScores:
    """Flat per-token results of a forward over response tokens, each of shape [tokens].

    logprobs: log-probability of each token, nat. entropies: entropy of the full-vocabulary
    distribution that it was drawn from, nat, without gradient unless asked for.
    """

    logprobs: Tensor
    entropies: Tensor


def load_policy(
    path: str, dtype: str = "float32"
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load model (no dropout) and tokenizer from a folder or hub name.

    dtype: of weights and products, `float32` or `float64`. `bfloat16`: of the products alone; the
    weights stay float32, or small updates would be rounded away.
    """
    tokenizer = load_tokenizer(path)
    mixed = dtype == "bfloat16"
    options: dict[str, Any] = {"dtype": torch.float32 if mixed else getattr(torch, dtype)}
    if mixed and not torch.cuda.is_available():
        # The fused attention's backward is six times slower in bfloat16 than in float32 on a CPU.
        options["attn_implementation"] = "eager"
    model = _load(partial(AutoModelForCausalLM.from_pretrained, **options), path)
    model.eval()  # no dropout: the importance ratio must be 1 while the policy has not moved
    model.mixed_precision = mixed
    _check_head(model, path)
    return model, tokenizer


def computing(model: PreTrainedModel) -> AbstractContextManager[None]:
    """Where this model's products are worked out: in bfloat16 if it was loaded so."""
    device = next(model.parameters()).device.type
    return torch.autocast(device, torch.bfloat16, enabled=getattr(model, "mixed_precision", False))


@torch.no_grad()
def _check_head(model: PreTrainedModel, path: str) -> None:
    """The logits must be the head of the last hidden state: `score_tokens` works them out so."""
    ids = torch.zeros(1, 1, dtype=torch.long)
    head = model.get_output_embeddings()
    ours = head(model.base_model(input_ids=ids).last_hidden_state)
    if not torch.allclose(ours, model(input_ids=ids).logits, atol=1e-5, equal_nan=True):
        raise UserError(
            f"{path}: this model ({model.config.model_type}) does more to its logits than one "
            f"linear layer (it scales or caps them), which is not supported. Choose another model "
            f"in the study's settings.base.path."
        )


def save_policy(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    folder: Path,
    weights: dict[str, Tensor] | None = None,
) -> None:
    """Save model and tokenizer as a Hugging Face folder, whole or not at all.

    weights: by name, where the model's own are not whole.
    """
    aside = folder.with_name(folder.name + ".unfinished")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        model.save_pretrained(aside, state_dict=weights)
        tokenizer.save_pretrained(aside)
        for file in aside.iterdir():
            sync(file)
        shutil.rmtree(folder, ignore_errors=True)
        aside.rename(folder)
        sync(folder.parent)
    except Exception as error:  # safetensors and tokenizers raise their own kinds
        shutil.rmtree(aside, ignore_errors=True)
        raise UserError(
            f"{folder}: cannot save the model: {error}. Free disk space or mend the permissions, "
            f"then run again."
        ) from error


def load_tokenizer(path: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a model folder or hub name."""
    return _load(AutoTokenizer.from_pretrained, path)


def load_positions(path: str) -> int | None:
    """The tokens that a model folder or hub name can take in: `exgrpo.room`."""
    return positions_of(_load(AutoConfig.from_pretrained, path).to_dict())


def names_hub(path: str) -> bool:
    """Whether it is the name of a model on the hub, `owner/name` or `name`, and no path here."""
    return path.count("/") <= 1 and path[:1] not in ("", ".", "/", "~") and not Path(path).exists()


def _load(loader: Callable[[str], Any], path: str) -> Any:
    """Call a transformers loader; UserError when the folder or the hub name gives nothing."""
    if not names_hub(path) and not (Path(path) / "config.json").is_file():
        raise UserError(
            f"{path}: no model here: the folder or its config.json is missing. Give a Hugging "
            f"Face model folder or a hub name in the study's settings.base.path."
        )
    try:
        return loader(path)
    except (OSError, ValueError, SafetensorError) as error:
        first = str(error).strip().splitlines()[0]
        raise UserError(
            f"{path}: cannot load the model that settings.base.path names: {first} Check the "
            f"name; a hub name needs the hub within reach."
        ) from error


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """Sixteen hex digits that name a tokenizer by its vocabulary."""
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return hashlib.sha256(repr(vocabulary).encode()).hexdigest()[:16]


def fingerprint(model: PreTrainedModel) -> str:
    """Sixteen hex digits over name, shape and bytes of every weight: tells two models apart."""
    digest = hashlib.sha256()
    for name, weight in model.state_dict().items():
        digest.update(f"{name} {list(weight.shape)} {weight.dtype}".encode())
        digest.update(weight.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()[:16]


def stop_ids(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, extra: Sequence[str] = ()
) -> tuple[int, ...]:
    """Every token id that ends a response: the generation config's, the tokenizer's, and `extra`.

    extra: tokens by their text, `settings.prompt.stop`. UserError where one is no token.
    """
    configured = getattr(model.generation_config, "eos_token_id", None)
    ids = configured if isinstance(configured, list) else [configured]
    ids = [*ids, *(token_id(tokenizer, text) for text in extra), tokenizer.eos_token_id]
    return tuple(sorted({each for each in ids if each is not None}))


def token_id(tokenizer: PreTrainedTokenizerBase, text: str) -> int:
    """The id of the token with this text, from `settings.prompt.stop`. UserError if it is none."""
    known = tokenizer.get_vocab().get(text)
    ids = tokenizer(text, add_special_tokens=False).input_ids if known is None else [known]
    if len(ids) != 1 or tokenizer.decode(ids) != text:
        raise UserError(
            f"settings.prompt.stop: {text!r} is not one token of this model's tokenizer. Give the "
            f"text of a single token, or leave it out."
        )
    return int(ids[0])


def response_texts(
    tokenizer: PreTrainedTokenizerBase,
    responses: Sequence[Sequence[int]],
    stop_ids: Sequence[int],
) -> list[str]:
    """Responses as text, less the token that ended each and special tokens that are no think tags.

    Tokens are told by their ids: cut off by its text, what was said before could go with one.
    """
    left_out = special_ids(tokenizer) - {
        tokenizer.get_vocab()[tag] for tag in THINK_TAGS & tokenizer.get_vocab().keys()
    }
    texts = []
    for ids in responses:
        body = ids[:-1] if len(ids) and ids[-1] in stop_ids else ids
        kept = [each for each in body if each not in left_out]
        texts.append(str(tokenizer.decode(kept, clean_up_tokenization_spaces=False)))
    return texts


def special_ids(tokenizer: PreTrainedTokenizerBase) -> set[int]:
    """The ids of control tokens: those added as special, and the named ones (`<s>`, ...)."""
    added = tokenizer.added_tokens_decoder.items()
    return {*(number for number, token in added if token.special), *tokenizer.all_special_ids}


def micro_batches(sequences: Sequence[TokenSequence], budget: int) -> Iterator[list[int]]:
    """Indices of sequences of like length, at most `budget` padded tokens together.

    Every sequence comes exactly once; one longer than the budget comes alone.
    """
    batch: list[int] = []
    longest = 0
    for index in sorted(range(len(sequences)), key=lambda i: (len(sequences[i]), i)):
        longest = max(longest, len(sequences[index]))
        if batch and longest * (len(batch) + 1) > budget:
            yield batch
            batch, longest = [], len(sequences[index])
        batch.append(index)
    if batch:
        yield batch


def score_tokens(
    model: PreTrainedModel,
    sequences: Sequence[TokenSequence],
    temperature: float,
    entropy_gradient: bool = False,
) -> TokenScores:
    """One forward: log-probabilities and entropies of all response tokens, flat, in order.

    The alignment is fixed here and nowhere else: the logits at position t belong to the token at
    position t + 1. The distribution is the one sampled from: logits / temperature. Only response
    tokens have logits, at most `HEAD_LOGITS` at a time; backward works them out again.
    """
    device = next(model.parameters()).device
    width = max(len(sequence) for sequence in sequences)
    ids = torch.zeros(len(sequences), width, dtype=torch.long)
    predicts = torch.zeros(len(sequences), width, dtype=torch.bool)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = torch.tensor(sequence.prompt_ids + sequence.response_ids)
        predicts[row, len(sequence.prompt_ids) - 1 : len(sequence) - 1] = True
    targets = torch.tensor([i for sequence in sequences for i in sequence.response_ids]).to(device)
    head: Any = model.get_output_embeddings()
    with computing(model):
        # No attention mask: padding is on the right, where a causal model never looks back from.
        hidden = model.base_model(input_ids=ids.to(device), use_cache=False).last_hidden_state
        hidden = hidden[predicts.to(device)]
        count = -(-len(targets) * head.out_features // HEAD_LOGITS)
        if count == 1:
            return TokenScores(*_score(head, hidden, targets, temperature, entropy_gradient))
        parts = [
            checkpoint(
                _score, head, *part, temperature, entropy_gradient,
                use_reentrant=False, preserve_rng_state=False,
            )
            for part in zip(hidden.tensor_split(count), targets.tensor_split(count), strict=True)
        ]  # fmt: skip
    logprobs, entropies = (torch.cat(each) for each in zip(*parts, strict=True))
    return TokenScores(logprobs, entropies)


def _score(
    head: torch.nn.Module,
    hidden: Tensor,
    targets: Tensor,
    temperature: float,
    entropy_gradient: bool,
) -> tuple[Tensor, Tensor]:
    """Log-probability of each target and entropy, [tokens], from hidden states [tokens, width]."""
    log_softmax = distribution(head(hidden), temperature)
    logprobs = log_softmax.gather(-1, targets[:, None])[:, 0]
    with torch.set_grad_enabled(entropy_gradient and torch.is_grad_enabled()):
        return logprobs, entropy(log_softmax)


def distribution(logits: Tensor, temperature: float) -> Tensor:
    """Log-probabilities of logits / temperature over the last axis, in float32 at the least."""
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    return torch.log_softmax(precise / temperature, dim=-1)


def entropy(log_softmax: Tensor) -> Tensor:
    """Entropy in nat over the last axis; a token of probability 0 adds 0, in value and gradient."""
    finite = log_softmax.masked_fill(log_softmax == -torch.inf, 0.0)
    return -(log_softmax.exp() * finite).sum(-1)
