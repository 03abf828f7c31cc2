"""Rollouts: K responses a question, behind one contract.

An engine is a function `generate(model, prompts, seeds, sampling, finished)` that returns one list
of rollouts a prompt, one for each of its seeds. Before, it hands each rollout over once, in batches
of whatever size and order suits it, by calling `finished`. A rollout depends on its prompt, its
seed and the policy, and on nothing else in the batch but the rounding of its logits. Sampling is
never truncated (no top-p, no top-k): the recorded log-probability is that of the distribution that
the loss divides by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Sampling:
    """How to sample: temperature, the length limit in tokens, the ids that end a response.

    batch: most sequences that are generated together; it changes no rollout.
    """

    temperature: float
    max_new_tokens: int
    stop_ids: tuple[int, ...]
    batch: int


@dataclass(frozen=True, eq=False)
class Rollout:
    """A sampled response. `logprobs` and `entropies` (nat): one value a token, float, [tokens].

    finish: `stop` when the last token is a stop token, `length` when the limit cut it off.
    """

    token_ids: list[int]
    logprobs: np.ndarray
    entropies: np.ndarray
    finish: str

    @property
    def mean_entropy(self) -> float:
        return float(self.entropies.mean(dtype=np.float64))

    @property
    def nll(self) -> float:
        return -float(self.logprobs.mean(dtype=np.float64))


# Called with rollouts as they are ready, and the number of each: its place among all the seeds.
Finished = Callable[[Sequence[int], Sequence[Rollout]], None]
