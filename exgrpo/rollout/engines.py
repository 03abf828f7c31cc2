"""Which engine samples, for settings and hardware."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import torch
from transformers import PreTrainedModel

from exgrpo.hardware import Hardware
from exgrpo.policy import load_policy
from exgrpo.processes import Processes
from exgrpo.rollout import Engine
from exgrpo.rollout.torch_engine import TorchEngine
from exgrpo.rollout.vllm_engine import vllm_engine
from exgrpo.settings import RunSettings
from exgrpo.weights import copy_weights


@contextmanager
def engine_of(
    settings: RunSettings,
    hardware: Hardware,
    scorer: torch.nn.Module,
    policy: PreTrainedModel,
    path: str,
    processes: Processes,
    prompts: Sequence[list[int]],
) -> Iterator[Engine]:
    """The engine of `rollout.engine`, ended on leaving.

    scorer: scores with the policy now (`exgrpo.scorer.Scorer`, as wrapped). policy: whose weights
    the engine takes over. path: folder or hub name of a model of the same shape and tokenizer.
    prompts: every prompt (token ids) that may be asked, the first of them to probe the engine with.
    """
    if settings.rollout.engine == "vllm":
        with vllm_engine(settings, hardware, scorer, policy, path, processes, prompts) as engine:
            yield engine
        return
    if not hardware.sharded:
        yield TorchEngine(policy)
        return
    replica, _ = load_policy(path, settings.training.dtype)
    torch.nn.Module.to(replica, next(policy.parameters()).device)  # its own `to` has no types
    yield TorchEngine(replica, partial(copy_weights, policy, replica))
