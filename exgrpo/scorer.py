"""The policy as the trainer calls it: log-probabilities and entropies, whoever holds the weights.

Accelerate wraps the `Scorer`, so that every forward, the head included, goes through the hooks that
average gradients (DDP) or bring sharded weights together (FSDP).
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from transformers import PreTrainedModel

from exgrpo.policy import TokenScores, TokenSequence, micro_batches, score_tokens
from exgrpo.processes import ALONE, Processes

# What a process scores that has no share while others have one: its result is thrown away.
FILLER = TokenSequence([0], [0])


class Scorer(torch.nn.Module):
    """`exgrpo.policy.score_tokens` as the forward of a module."""

    def __init__(self, policy: PreTrainedModel) -> None:
        super().__init__()
        self.policy = policy

    def forward(
        self, sequences: Sequence[TokenSequence], temperature: float, entropy_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        # A plain tuple: the hooks look for tensors in it.
        scores = score_tokens(self.policy, sequences, temperature, entropy_gradient)
        return scores.logprobs, scores.entropies


@torch.no_grad()
def score_sequences(
    scorer: torch.nn.Module,
    sequences: Sequence[TokenSequence],
    temperature: float,
    budget: int,
    processes: Processes = ALONE,
) -> list[TokenScores]:
    """Scores of each sequence apart, in the given order, without gradient, on the CPU.

    budget: padded tokens of a forward. The forwards are dealt out among the processes.
    """
    scores: dict[int, TokenScores] = {}
    batches = list(micro_batches(sequences, budget))
    for batch in processes.deal(batches, nothing=[]):
        chosen = [sequences[index] for index in batch] or [FILLER]
        lengths = [len(each.response_ids) for each in chosen]
        flat = scorer(chosen, temperature)
        parts = zip(*(each.cpu().split(lengths) for each in flat), strict=True)
        for index, (logprobs, entropies) in zip(batch, parts, strict=False):  # not of the filler
            scores[index] = TokenScores(logprobs, entropies)
    whole = {index: each for own in processes.gather(scores) for index, each in own.items()}
    return [whole[index] for index in range(len(sequences))]
