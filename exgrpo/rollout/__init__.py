"""Rollouts: K responses a question, behind one contract, `Engine`.

Sampling is never truncated (no top-p, no top-k): the recorded log-probability is that of the
distribution that the loss divides by.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

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

    Both are of the distribution that was sampled from, as the engine worked it out. entropies:
    None where an engine does not know them. finish: `stop` when the last token is a stop token,
    `length` when the limit cut it off.
    """

    token_ids: list[int]
    logprobs: np.ndarray
    entropies: np.ndarray | None
    finish: str

    @property
    def mean_entropy(self) -> float | None:
        return None if self.entropies is None else float(self.entropies.mean(dtype=np.float64))

    @property
    def nll(self) -> float:
        return -float(self.logprobs.mean(dtype=np.float64))


# Called with rollouts as they are ready, and the number of each: its place among all the seeds.
Finished = Callable[[Sequence[int], Sequence[Rollout]], None]


class Engine(Protocol):
    """Samples from the policy.

    exact: its log-probabilities and entropies are those of the trainer's own forward, so that
    nothing needs to be scored again.
    """

    @property
    def exact(self) -> bool: ...

    def sync(self) -> None:
        """Wake up and take over the policy's weights as they are now. All processes call it."""

    def generate(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        finished: Finished,
    ) -> list[list[Rollout]]:
        """A rollout of prompt i (token ids) for each of seeds[i].

        Before it returns, each is handed over once, in batches of whatever size and order suits
        the engine, by calling `finished`. A rollout depends on its prompt, its seed and the policy,
        and on nothing else in the batch but the rounding of its logits.
        """

    def sleep(self) -> None:
        """Give memory back until the next `sync`."""

    def close(self) -> None:
        """End for good."""
