"""Where a study runs: nodes, GPUs, processes. Files of `config/hardware/`.

It decides how long a run takes and what fits, and changes no result but by rounding: so it is no
part of a run's settings or of its name, and a run may go on elsewhere. Everything here is [ours].
"""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from exgrpo.section import Section
from exgrpo.settings_files import existing, parse, read_yaml


class Hardware(Section):
    """What one run is given."""

    word: ClassVar[str] = "hardware"
    folder: ClassVar[str] = "hardware"

    title: str
    nodes: int = Field(1, ge=1)
    gpus: int = Field(0, ge=0)  # of a node, vLLM's own included; 0: all on processors
    gpu_memory: float | None = Field(None, gt=0)  # GB of each; None: not known beforehand
    processes: int = Field(1, ge=1)  # that train, on each node; on a GPU each has one to itself
    threads: int | None = Field(None, ge=1)  # of each process; None: as the command says
    # sharded: weights, gradients and optimiser are spread over the processes (FSDP); replicated:
    # each process has all of them (DDP)
    weights: Literal["replicated", "sharded"] = "replicated"
    # colocated: vLLM shares the GPU of its training process and sleeps while that trains;
    # own: it has a GPU to itself beside it
    engine: Literal["colocated", "own"] = "colocated"
    engine_memory: float = Field(0.4, gt=0, lt=1)  # share of its GPU that vLLM takes when awake
    # after new weights vLLM's log-probabilities of a probe may be so far from the trainer's (nat,
    # mean over tokens), or training stops; None: what the dtypes' rounding needs
    probe_gap: float | None = Field(None, gt=0)
    activation_checkpointing: bool = False  # backward works activations out again: less memory
    micro_batch_tokens: int | None = Field(None, ge=1)  # at most; the settings may say fewer
    memory: float | None = Field(None, gt=0)  # GB of a node that a scheduler is asked for
    hours: float | None = Field(None, gt=0)  # that a scheduler is asked for, a job

    @model_validator(mode="after")
    def _gpus_for_all(self) -> "Hardware":
        needed = self.processes * (2 if self.engine == "own" else 1)
        if self.gpus and self.gpus != needed:
            raise ValueError(
                f"{self.processes} processes with engine `{self.engine}` need {needed} GPUs a "
                f"node, gpus is {self.gpus}: change one"
            )
        return self

    @property
    def all_processes(self) -> int:
        """That train, on all nodes."""
        return self.nodes * self.processes

    @property
    def sharded(self) -> bool:
        """Whether a process holds less than all weights."""
        return self.weights == "sharded" and self.all_processes > 1

    def token_budget(self, wanted: int) -> int:
        """Padded tokens of a forward: `batch.micro_batch_tokens`, or fewer where that is much."""
        return min(wanted, self.micro_batch_tokens or wanted)


CPU = Hardware(title="One process on the processors of this machine")


def load_hardware(name: str, config: Path = Path("config")) -> Hardware:
    """Load `config/hardware/<name>.yaml`. Raises UserError like `exgrpo.studies.load_study`."""
    path = existing(Hardware, name, config, named_in=None)
    return parse(Hardware, read_yaml(path), path)
