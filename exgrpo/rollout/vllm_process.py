"""The process that vLLM lives in: it answers `exgrpo.rollout.vllm_engine` over one connection.

`python -m exgrpo.rollout.vllm_process DESCRIPTOR`. The first message is the options of the engine,
every other one a command and its arguments. Any number of ("finished", numbers, rollouts) may go
before the answer: ("done",) or ("failed", what happened, as a text).
"""

import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from exgrpo.rollout import Finished, Rollout, Sampling

HAND_OVER = 32  # finished rollouts that go to the trainer together


@dataclass(frozen=True)
class Sampler:
    """vLLM, and how it gets and gives back the memory that it shares (on a GPU)."""

    llm: Any  # vllm.LLM
    sleeps: bool

    def load(self, folder: str) -> None:
        """Wake up, take over the weights in the safetensors files of a folder, forget prefixes."""
        if self.sleeps:
            self.llm.wake_up()
        self.llm.collective_rpc("reload_weights", kwargs={"weights_iterator": _weights(folder)})
        self.llm.apply_model(_renew_head)
        self.llm.apply_model(partial(require_taken_over, folder=folder))
        if not self.llm.reset_prefix_cache():
            raise RuntimeError("vLLM did not clear its prefix cache: old prefixes would be used")

    def sleep(self) -> None:
        """Level 2: weights and cache are dropped; the next `load` brings new ones."""
        if self.sleeps:
            self.llm.sleep(level=2)

    def generate(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[int],
        sampling: Sampling,
        finished: Finished,
    ) -> None:
        """A rollout for each prompt and its seed, handed over as they end."""
        from vllm import SamplingParams
        from vllm.sampling_params import RequestOutputKind

        engine = self.llm.llm_engine
        for number, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
            how = SamplingParams(
                temperature=sampling.temperature,
                max_tokens=sampling.max_new_tokens,
                seed=seed,
                stop_token_ids=list(sampling.stop_ids),
                ignore_eos=True,  # only what is in stop_token_ids ends a response
                logprobs=0,  # that of the sampled token alone
                detokenize=False,
                output_kind=RequestOutputKind.FINAL_ONLY,
            )
            engine.add_request(str(number), {"prompt_token_ids": prompt}, how)
        ended: dict[int, Rollout] = {}
        parent = os.getppid()
        while engine.has_unfinished_requests():
            for output in engine.step():
                ended[int(output.request_id)] = rollout_of(output.outputs[0])
            if os.getppid() != parent:
                raise EOFError("the trainer is gone")
            if len(ended) >= HAND_OVER or not engine.has_unfinished_requests():
                finished(list(ended), list(ended.values()))
                ended = {}


def rollout_of(completion: Any) -> Rollout:
    """A `vllm.CompletionOutput` as it was sampled: nothing is cut, filled up or tokenised again."""
    ids, found = list(completion.token_ids), completion.logprobs
    if len(ids) != len(found):
        raise RuntimeError(f"vLLM gave {len(found)} log-probabilities for {len(ids)} tokens")
    if completion.finish_reason not in ("stop", "length"):
        raise RuntimeError(f"vLLM ended a response for the reason {completion.finish_reason!r}")
    logprobs = [each[token].logprob for token, each in zip(ids, found, strict=True)]
    return Rollout(ids, np.array(logprobs, np.float32), None, completion.finish_reason)


def _weights(folder: str) -> Iterator[tuple[str, Any]]:
    """Name and value of each weight, a file at a time."""
    from safetensors.torch import load_file

    for file in sorted(Path(folder).iterdir()):
        yield from load_file(file).items()


def _renew_head(model: Any) -> None:
    """A tied head has a packed copy of the embeddings on a CPU, which a reload leaves as it was."""
    head = getattr(model, "lm_head", None)
    if head is not None:
        head.quant_method.process_weights_after_loading(head)


def require_taken_over(model: Any, folder: str) -> None:
    """RuntimeError where a weight that vLLM keeps as it is written is not, bit for bit, the file's.

    Embeddings and norms are kept so; of the linears, those that vLLM neither fuses nor packs.
    """
    import torch

    own, compared = dict(model.named_parameters()), 0
    for name, value in _weights(folder):
        kept = own[name][: len(value)] if name in own else None  # a vocabulary is filled up
        if kept is None or kept.shape != value.shape:
            continue
        compared += 1
        if not torch.equal(kept, value.to(kept)):
            raise RuntimeError(f"vLLM has loaded new weights, and {name} is not as it was given")
    if not compared:
        raise RuntimeError("vLLM keeps no weight as it was given: whether it has new ones is open")


def _start(sleeps: bool, options: dict[str, Any]) -> Sampler:
    """Import and start vLLM. options: those of `vllm.LLM` that `vllm_engine` decides."""
    from vllm import LLM

    llm = LLM(
        **options,
        skip_tokenizer_init=True,  # ids go in, ids come out
        generation_config="vllm",  # a folder's own would bring top-p, penalties, lengths
        logprobs_mode="processed_logprobs",  # of what is sampled from, temperature included
        enable_sleep_mode=sleeps,
    )
    return Sampler(llm, sleeps)


@contextmanager
def _answering(connection: Connection) -> Iterator[None]:
    """Say that the work within is done, or what went wrong."""
    try:
        yield
    except Exception:
        connection.send(("failed", traceback.format_exc()))
        raise
    connection.send(("done",))


def main() -> None:
    # A machine that is taken away, or Ctrl-C, tells every process; the step that training ends
    # needs this one, and it ends with its connection.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    connection = Connection(int(sys.argv[1]))

    def finished(numbers: Sequence[int], rollouts: Sequence[Rollout]) -> None:
        connection.send(("finished", numbers, rollouts))

    try:
        options = connection.recv()
        with _answering(connection):
            sampler = _start(**options)
        while True:
            command = connection.recv()
            with _answering(connection):
                match command:
                    case ("load", folder):
                        sampler.load(folder)
                    case ("generate", prompts, seeds, sampling):
                        sampler.generate(prompts, seeds, sampling, finished)
                    case ("sleep",):
                        sampler.sleep()
    except (EOFError, BrokenPipeError):
        pass  # the trainer has closed the connection, or is gone
    os._exit(0)  # what vLLM leaves running in threads has nothing to save


if __name__ == "__main__":
    main()
