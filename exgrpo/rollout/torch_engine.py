"""Rollouts in plain torch: with the training model itself, or a copy of it where that is sharded.

Questions of like length are generated together. A question is prefilled once and its cache shared
by its rollouts; the cache is preallocated; finished rows leave the batch as it shrinks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from exgrpo.policy import computing, distribution, entropy
from exgrpo.rollout import Finished, Rollout, Sampling, stacked
from exgrpo.rollout.plain import PlainDecoder
from exgrpo.rollout.prefill import Prefill, prefill
from exgrpo.rollout.stacked import StackedDecoder

SHRINK_BELOW = 0.75  # copy the cache to the living rows when fewer than this share are left


@dataclass(frozen=True)
class TorchEngine:
    """The contract `exgrpo.rollout.Engine` for `generate`.

    model: what is sampled with. take_over: called by `sync`; fills the model where it is a copy.
    """

    model: PreTrainedModel
    take_over: Callable[[], None] = lambda: None

    @property
    def exact(self) -> bool:
        return True

    def sync(self) -> None:
        self.take_over()

    def generate(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        finished: Finished,
    ) -> list[list[Rollout]]:
        return generate(self.model, prompts, seeds, sampling, finished)

    def sleep(self) -> None:
        """It holds no memory between two calls."""

    def close(self) -> None:
        """Nothing to end."""


@torch.no_grad()
def generate(
    model: PreTrainedModel,
    prompts: Sequence[list[int]],
    seeds: Sequence[Sequence[int]],
    sampling: Sampling,
    finished: Finished = lambda numbers, rollouts: None,
) -> list[list[Rollout]]:
    """A rollout of prompt i (token ids) for each of seeds[i]. finished: called after each batch."""
    of = [index for index, own in enumerate(seeds) for _ in own]
    flat = [seed for own in seeds for seed in own]
    rollouts: dict[int, Rollout] = {}
    if not flat:
        return [[] for _ in seeds]
    with computing(model):
        prompted = prefill(model, prompts)
        for rows in _batches([len(prompts[index]) for index in of], sampling.batch):
            start = prompted.of([of[row] for row in rows])
            batch = _generate_batch(model, start, [flat[row] for row in rows], sampling)
            rollouts.update(zip(rows, batch, strict=True))
            finished(rows, batch)
    in_order = iter(rollouts[row] for row in range(len(flat)))
    return [[next(in_order) for _ in own] for own in seeds]


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Indices by length, in as few batches of at most `size` as can be, of about equal size."""
    order = sorted(range(len(lengths)), key=lambda index: (lengths[index], index))
    count = -(-len(order) // size)
    for part in np.array_split(order, count) if count else []:
        yield part.tolist()


def _generate_batch(
    model: PreTrainedModel, start: Prefill, seeds: Sequence[int], sampling: Sampling
) -> list[Rollout]:
    """One rollout a seed. start: the prefilled prompt of each."""
    decoder_class = StackedDecoder if stacked.fits(model) else PlainDecoder
    decoder = decoder_class(model, start, sampling.max_new_tokens)
    logits = start.logits
    uniform = _uniform(seeds, sampling.max_new_tokens).to(logits.device)
    stops = torch.tensor(sampling.stop_ids, device=logits.device)
    rows = torch.arange(len(seeds), device=logits.device)  # which rollout each row of the batch is
    living = torch.ones_like(rows, dtype=torch.bool)
    drawn: list[tuple[Tensor, ...]] = []  # row, whether it was living, token, log p, entropy
    for number in uniform.T:
        log_softmax = distribution(logits, sampling.temperature)
        tokens = _draw(log_softmax, number[rows])
        logprobs = log_softmax.gather(-1, tokens[:, None])[:, 0]
        drawn.append((rows, living, tokens, logprobs, entropy(log_softmax)))
        living = living & (tokens[:, None] != stops).all(-1)
        left = int(living.sum())
        if not left or len(drawn) == sampling.max_new_tokens:
            break
        if left < SHRINK_BELOW * len(rows):
            decoder.keep(living)
            rows, tokens, living = rows[living], tokens[living], living[living]
        logits = decoder.step(tokens)
    return _rollouts(drawn, len(seeds), sampling)


def _rollouts(drawn: Sequence[tuple[Tensor, ...]], count: int, sampling: Sampling) -> list[Rollout]:
    """What was drawn token by token, as `count` rollouts."""
    row, living, *columns = (torch.cat(each) for each in zip(*drawn, strict=True))
    row = row[living]
    order = row.argsort(stable=True)
    ends = row.bincount(minlength=count).cumsum(0)[:-1].tolist()
    parts = (np.split(each[living][order].cpu().numpy(), ends) for each in columns)
    return [
        Rollout(
            tokens.tolist(),
            logprobs,
            entropies,
            finish="stop" if tokens[-1] in sampling.stop_ids else "length",
        )
        for tokens, logprobs, entropies in zip(*parts, strict=True)
    ]


def _uniform(seeds: Sequence[int], count: int) -> Tensor:
    """Numbers in [0, 1), [seeds, count]: each seed's own stream, one number a token."""
    streams = [np.random.Generator(np.random.Philox(key=seed)).random(count) for seed in seeds]
    return torch.from_numpy(np.stack(streams))


def _draw(log_softmax: Tensor, uniform: Tensor) -> Tensor:
    """One token a row, [rows]: the first whose cumulative probability is above the row's number."""
    cumulative = log_softmax.double().exp().cumsum(-1)
    return (cumulative <= (uniform * cumulative[:, -1])[:, None]).sum(-1)
