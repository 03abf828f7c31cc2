"""Rollouts: K responses a question, behind one contract.

An engine is a function `generate(model, prompts, counts, sampling, generator)` that returns one
list of rollouts a prompt, counts[i] of prompt i. Sampling is never truncated (no top-p, no
top-k): the recorded log-probability is that of the distribution that the loss divides by.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sampling:
    """How to sample: temperature, the length limit in tokens, the ids that end a response."""

    temperature: float
    max_new_tokens: int
    stop_ids: tuple[int, ...]


@dataclass(frozen=True)
class Rollout:
    """A sampled response. `logprobs` and `entropies` (nat) have one value a token.

    finish: `stop` when the last token is a stop token, `length` when the limit cut it off.
    """

    token_ids: list[int]
    logprobs: list[float]
    entropies: list[float]
    finish: str

    @property
    def mean_entropy(self) -> float:
        return sum(self.entropies) / len(self.entropies)

    @property
    def nll(self) -> float:
        return -sum(self.logprobs) / len(self.logprobs)
