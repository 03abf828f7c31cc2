"""The policy as the trainer calls it: log-probabilities and entropies, whoever holds the weights.

The `Scorer` is what is wrapped, so that every forward, the head included, goes through the hooks
that average gradients (DDP) or bring sharded weights together (FSDP).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import PreTrainedModel

from exgrpo.errors import UserError
from exgrpo.policy import TokenScores, TokenSequence, micro_batches, score_tokens
from exgrpo.processes import ALONE, Processes

# What a process scores that has no share while others have one: its result is thrown away.
FILLER = TokenSequence([0], [0])


class Scorer(torch.nn.Module):
    """`exgrpo.policy.score_tokens` as the forward of a module.

    checkpointing: keep only what enters each decoder layer, and work its activations out again in
    backward. UserError for a model with dropout, which this would switch on.
    """

    def __init__(self, policy: PreTrainedModel, checkpointing: bool = False) -> None:
        super().__init__()
        self.policy = policy
        self.checkpointing = checkpointing
        if not checkpointing:
            return
        if found := dropouts(policy):
            raise UserError(
                f"hardware.activation_checkpointing: this model has dropout ({', '.join(found)}), "
                f"which would be on while it learns. Set it to false, or the model's dropout to 0."
            )
        policy.gradient_checkpointing_enable({"use_reentrant": False})

    def forward(
        self, sequences: Sequence[TokenSequence], temperature: float, entropy_gradient: bool = False
    ) -> tuple[Tensor, Tensor]:
        # A plain tuple: the hooks look for tensors in it.
        with _learning(self.policy, self.checkpointing and torch.is_grad_enabled()):
            scores = score_tokens(self.policy, sequences, temperature, entropy_gradient)
        return scores.logprobs.clone(), scores.entropies  # a view could part with FSDP's hook


@contextmanager
def _learning(policy: PreTrainedModel, on: bool) -> Iterator[None]:
    """Training mode, in which transformers checkpoints activations and keeps no cache; then out."""
    policy.train(on)
    try:
        yield
    finally:
        policy.eval()


def dropouts(model: torch.nn.Module) -> list[str]:
    """What would drop values at random in training mode: a layer, or a rate that one reads."""
    return [
        f"{name}.{key}"
        for name, module in model.named_modules()
        for key, rate in vars(module).items()
        if ("dropout" in key or (key == "p" and isinstance(module, torch.nn.Dropout)))
        and isinstance(rate, int | float)
        and rate > 0
    ]


def shard(scorer: Scorer, device: torch.device) -> None:
    """Spread the weights over all processes (FSDP): each decoder layer is a unit, the rest another.

    Accelerate's own way to FSDP is there on a GPU alone; this one is the same on both. The rest is
    given back after a forward too, so that the parameters seen between two forwards are shards.
    """
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    layers = scorer.policy._no_split_modules or ()
    for module in list(scorer.policy.modules()):
        if type(module).__name__ in layers:
            fully_shard(module, mesh=mesh, reshard_after_forward=True)
    fully_shard(scorer, mesh=mesh, reshard_after_forward=True)


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
        for index, part in zip(batch, parts, strict=False):  # not of the filler
            # Not views: of one of them the whole batch's storage would be sent to the others.
            scores[index] = TokenScores(*(each.clone() for each in part))
    whole = {index: each for own in processes.gather(scores) for index, each in own.items()}
    return [whole[index] for index in range(len(sequences))]
