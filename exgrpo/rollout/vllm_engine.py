"""Rollouts by vLLM, in a process of its own, which gets new weights before it samples.

They go through files in shared memory. After each sync a probe is sampled, which the trainer
scores with its own forward: where both do not agree about it, training stops.
"""

import importlib.util
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor
from transformers import PreTrainedModel

from exgrpo.errors import UserError
from exgrpo.hardware import Hardware
from exgrpo.policy import TokenSequence
from exgrpo.processes import Processes
from exgrpo.rollout import Finished, Rollout, Sampling
from exgrpo.scorer import score_sequences
from exgrpo.settings import RunSettings
from exgrpo.weights import full_weights

T = TypeVar("T")

# nat a token, mean of the probe: float32 15 times, bfloat16 5 times what rounding makes of a
# model of 30 layers (docs/vllm.md).
GAP = {"float32": 1e-4, "bfloat16": 0.2}
CHILD = "exgrpo.rollout.vllm_process"
MISSING = (
    "settings.rollout.engine is vllm, which is not installed here. With a GPU: pip install -e "
    "'.[vllm]'. Without one: make test-vllm makes an environment of its own in .venv-scale. Or set "
    "rollout.engine to torch, which makes another run."
)
PROBE_PROMPTS, PROBE_TOKENS = 8, 16
CPU_CACHE = 2**30  # bytes of vLLM's key-value cache without a GPU
FILE_BYTES = 2**30  # of weights that are held at a time on their way
SHARED_MEMORY, PREFIX = Path("/dev/shm"), "exgrpo-weights-"
END_SECONDS = 2  # that its process has to end by itself
SAID = 3000  # characters of what vLLM last wrote, in an error
# What tells a process its place among others: the engine has none of them.
PLACES = ("RANK", "WORLD_SIZE", "LOCAL_", "GROUP_", "ROLE_", "MASTER_", "TORCHELASTIC_",
          "ACCELERATE_", "FSDP_", "PMI_", "OMPI_")  # fmt: skip


class Child:
    """The process of `exgrpo.rollout.vllm_process`, from its start until `close`."""

    def __init__(self, options: dict[str, Any], environment: dict[str, str]) -> None:
        self.said: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (as long as the process)
        self.connection, theirs = Pipe()
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-m", CHILD, str(theirs.fileno())],
                stdout=self.said,
                stderr=self.said,
                env=environment,
                pass_fds=[theirs.fileno()],
            )
        finally:
            theirs.close()  # or the end of the process could not be told
        try:
            self.ask(options)
        except BaseException:
            self.close()
            raise

    def ask(self, message: Any, finished: Finished = lambda numbers, rollouts: None) -> None:
        """Send a command and wait for its end. UserError when it fails, or the process has died.

        finished: called with the rollouts that come meanwhile. An error in it ends the process.
        """
        try:
            answer = self._exchange(message)
            while answer[0] == "finished":
                finished(*answer[1:])
                answer = self._exchange()
            if answer[0] == "failed":
                what = answer[1].strip()
                raise UserError(
                    f"vLLM cannot go on: {what.splitlines()[-1]}. Where memory is short, set "
                    f"hardware.engine_memory (lower where the GPU is full, higher where vLLM has "
                    f"no room of its own), or lower rollout.batch, which makes another run; what "
                    f"this vLLM does not support needs rollout.engine torch, which makes another "
                    f"run. The whole of it:\n{what}"
                )
        except BaseException:
            self.close()  # it may be at work still, and would answer the next command with that
            raise

    def _exchange(self, *messages: Any) -> Any:
        """Send, then wait for what comes next. UserError when the process has died."""
        try:
            for message in messages:
                self.connection.send(message)
            return self.connection.recv()
        except (EOFError, OSError) as error:
            raise UserError(self._died()) from error

    def _died(self) -> str:
        self.close()
        code = self.process.returncode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        self.said.seek(max(0, self.said.seek(0, os.SEEK_END) - SAID))
        last = self.said.read().decode(errors="replace")
        return (
            f"the process of vLLM has ended ({how}). After SIGKILL most likely memory ran out: "
            f"ask for more in hardware.memory, or lower hardware.engine_memory where it was the "
            f"GPU's. Started again, the run goes on from its last checkpoint. What vLLM last "
            f"said:\n{last}"
        )

    def close(self) -> None:
        self.connection.close()  # which it takes as the end
        try:
            self.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:  # it is at work on what nobody waits for
            self.process.kill()
            self.process.wait()


@dataclass(frozen=True)
class Probe:
    """What is sampled after a sync to see whether trainer and engine hold the same policy.

    limit: of the mean |trainer - engine| log-probability, nat.
    """

    prompts: Sequence[list[int]]
    tokens: int  # of a continuation
    temperature: float
    limit: float
    budget: int  # padded tokens of a forward


@dataclass(frozen=True)
class VllmEngine:
    """The contract `exgrpo.rollout.Engine`. Every process of the training has one.

    policy: whose weights are taken over. scorer: scores with it (`exgrpo.scorer.Scorer`, as
    wrapped). longest: most tokens of prompt and response together.
    """

    child: Child
    scorer: torch.nn.Module
    policy: PreTrainedModel
    dtype: torch.dtype
    longest: int
    probe: Probe
    processes: Processes
    per_node: int  # processes of this training on a node: they share what is written

    @property
    def exact(self) -> bool:
        return False

    def sync(self) -> None:
        """See `Engine`. UserError where trainer and engine do not agree about the probe."""
        with self._written_weights() as folder:
            sampled = self._in_all(lambda: self._take_over(folder))
        require_same_policy(self.probe, sampled, self.scorer, self.processes)

    def generate(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[Sequence[int]],
        sampling: Sampling,
        finished: Finished,
    ) -> list[list[Rollout]]:
        of = [prompt for prompt, own in zip(prompts, seeds, strict=True) for _ in own]
        flat = [seed for own in seeds for seed in own]
        needed = max(map(len, of), default=0) + sampling.max_new_tokens
        if needed > self.longest:
            raise ValueError(f"{needed} tokens, of {self.longest} that the engine was started for")
        rollouts: dict[int, Rollout] = {}

        def collect(numbers: Sequence[int], ended: Sequence[Rollout]) -> None:
            rollouts.update(zip(numbers, ended, strict=True))
            finished(numbers, ended)

        self.child.ask(("generate", of, flat, sampling), collect)
        in_order = iter(rollouts[number] for number in range(len(flat)))
        return [[next(in_order) for _ in own] for own in seeds]

    def sleep(self) -> None:
        self.child.ask(("sleep",))

    def close(self) -> None:
        self.child.close()

    @contextmanager
    def _written_weights(self) -> Iterator[str]:
        """A folder with the weights, written by one process of each node; gone on leaving."""
        first = self.processes.rank - self.processes.rank % self.per_node
        with ExitStack() as opened:

            def write() -> str:
                weights = full_weights(self.policy)
                try:
                    return self._write(weights, opened) if self.processes.rank == first else ""
                finally:
                    for _ in weights:  # all bring them together, though one cannot write
                        pass

            yield self._in_all(write)[first]

    def _write(self, weights: Iterator[tuple[str, Tensor]], opened: ExitStack) -> str:
        """Write the weights, a gigabyte a file, into a new folder, which `opened` deletes."""
        size = sum(weight.numel() for weight in self.policy.parameters()) * self.dtype.itemsize
        folder = opened.enter_context(TemporaryDirectory(prefix=PREFIX, dir=_room_for(size)))
        part: dict[str, Tensor] = {}
        files, held = 0, 0

        def save() -> None:
            nonlocal files, held
            save_file(part, f"{folder}/{files:05}.safetensors")
            files, held = files + 1, 0
            part.clear()

        for name, value in weights:
            part[name] = value.to("cpu", self.dtype).contiguous()
            held += part[name].nbytes
            if held >= FILE_BYTES:
                save()
        if part:
            save()
        return folder

    def _take_over(self, folder: str) -> list[Rollout]:
        """Have the engine load the weights; what it then samples for the probe."""
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # what torch holds unused, now that they are written
        self.child.ask(("load", folder))
        prompts, seeds = self.probe.prompts, [[number] for number in range(len(self.probe.prompts))]
        how = Sampling(self.probe.temperature, self.probe.tokens, (), batch=len(prompts))
        return [own[0] for own in self.generate(prompts, seeds, how, lambda *_: None)]

    def _in_all(self, work: Callable[[], T]) -> list[T]:
        """What the work of each process gives. An error in one is one in all: none waits for it."""
        done: T | UserError
        try:
            done = work()
        except UserError as error:
            done = error
        except (OSError, SafetensorError) as error:
            done = UserError(f"the weights cannot be handed over to vLLM: {error}")
        found: list[T] = []
        for each in self.processes.gather(done):
            if isinstance(each, UserError):
                raise each
            found.append(each)
        return found


def require_same_policy(
    probe: Probe,
    sampled: Sequence[Sequence[Rollout]],
    scorer: torch.nn.Module,
    processes: Processes,
) -> None:
    """UserError where the trainer's log-probabilities of the probe are not the engines'.

    sampled: the rollouts of every process's engine for the prompts of the probe.
    """
    sequences = [
        TokenSequence(prompt, rollout.token_ids)
        for own in sampled
        for prompt, rollout in zip(probe.prompts, own, strict=True)
    ]
    scores = iter(score_sequences(scorer, sequences, probe.temperature, probe.budget, processes))
    gaps = []
    for own in sampled:
        apart = [next(scores).logprobs.numpy() - rollout.logprobs for rollout in own]
        gaps.append(float(np.abs(np.concatenate(apart)).mean()))
    gap = max(gaps, key=lambda each: math.inf if math.isnan(each) else each)
    if not gap <= probe.limit:
        raise UserError(
            f"vLLM has been given the policy's weights and does not sample from the policy: its "
            f"log-probabilities of {len(probe.prompts)} short continuations are {gap:.3g} nat a "
            f"token from the trainer's, {probe.limit:g} are allowed (hardware.probe_gap). "
            f"Training stops, because every importance ratio would be wrong. A gap somewhat above "
            f"is this model's rounding: raise hardware.probe_gap, or set rollout.engine_dtype to "
            f"float32, which makes another run. A greater one is a fault of this vLLM with this "
            f"model: set rollout.engine to torch, which makes another run."
        )


def probe_limit(settings: RunSettings, hardware: Hardware) -> float:
    """What the probe may be off, nat a token."""
    dtypes = (settings.rollout.engine_dtype, settings.training.dtype)
    return hardware.probe_gap or GAP["bfloat16" if "bfloat16" in dtypes else "float32"]


def _room_for(size: int) -> Path:
    """Shared memory where there is so much of it (bytes), else the folder for temporary files.

    UserError where neither has room.
    """
    found = []
    for folder in (SHARED_MEMORY, Path(tempfile.gettempdir())):
        free = shutil.disk_usage(folder).free if folder.is_dir() else 0
        if free > size * 1.1:
            return folder
        found.append(f"{folder} has {free / 1e9:.1f} GB")
    raise UserError(
        f"the weights go to vLLM through files of {size / 1e9:.1f} GB, and there is no room for "
        f"them: {', '.join(found)}. Make room in one of them, or name another folder in TMPDIR."
    )


def environment(device: torch.device, hardware: Hardware) -> dict[str, str]:
    """The environment of the engine of the process that trains on `device`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(PLACES)}
    kept |= {
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # it has a process of its own as it is
        "VLLM_NO_USAGE_STATS": "1",
    }
    if device.type == "cpu":
        return kept | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    count = torch.cuda.device_count()
    own = (device.index or 0) + (hardware.processes if hardware.engine == "own" else 0)
    if own >= count:
        raise UserError(
            f"hardware.engine own: vLLM of process {device.index} takes GPU {own}, of {count} that "
            f"are visible. Make {own + 1} visible (CUDA_VISIBLE_DEVICES), or set engine to "
            f"colocated."
        )
    visible = os.environ.get("CUDA_VISIBLE_DEVICES") or ",".join(map(str, range(count)))
    return kept | {"CUDA_VISIBLE_DEVICES": visible.split(",")[own]}


@contextmanager
def vllm_engine(
    settings: RunSettings,
    hardware: Hardware,
    scorer: torch.nn.Module,
    policy: PreTrainedModel,
    path: str,
    processes: Processes,
    prompts: Sequence[list[int]],
) -> Iterator[VllmEngine]:
    """Start vLLM with the model in `path`; ended on leaving. See `exgrpo.rollout.engines`."""
    if importlib.util.find_spec("vllm") is None:
        raise UserError(MISSING)
    rollout, device = settings.rollout, next(policy.parameters()).device
    response = max(rollout.max_new_tokens, settings.evaluation.max_new_tokens)
    longest = max(map(len, prompts)) + response
    on_gpu = device.type == "cuda"
    options = {
        "model": path,
        "dtype": rollout.engine_dtype,
        "max_model_len": longest,
        "max_num_seqs": rollout.batch,
        "seed": 0,  # each rollout has its own
    }
    if on_gpu:
        options["gpu_memory_utilization"] = hardware.engine_memory
    else:
        options |= {"kv_cache_memory_bytes": CPU_CACHE, "enforce_eager": True}
    probe = Probe(
        prompts[:PROBE_PROMPTS],
        min(PROBE_TOKENS, response),
        rollout.temperature,
        probe_limit(settings, hardware),
        hardware.token_budget(settings.batch.micro_batch_tokens),
    )
    start = {"sleeps": on_gpu and hardware.engine == "colocated", "options": options}
    with closing(Child(start, environment(device, hardware))) as child:
        yield VllmEngine(
            child,
            scorer,
            policy,
            getattr(torch, rollout.engine_dtype),
            longest,
            probe,
            processes,
            hardware.processes,
        )
