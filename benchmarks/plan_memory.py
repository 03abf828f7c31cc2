"""Measured memory of a real update against what `exgrpo plan` says, for three sizes of model.

    python benchmarks/plan_memory.py

Random Llama models in float32 and `exgrpo.update.update_policy`, twice, on rows of which a third is
replayed. Every measurement is a process of its own: the most memory that it held, less what it held
before the model was made. Nothing is loaded from disk.
"""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the parent stays small: a child's peak starts from its parent's memory
    from exgrpo.batch import Row
    from exgrpo.plan.memory import Case

MODELS = {  # layers, width, inner width, heads, key-value heads, vocabulary
    "5M": (6, 256, 704, 4, 4, 512),
    "30M": (8, 512, 1408, 8, 4, 4096),
    "135M": (30, 576, 1536, 9, 3, 49_152),  # as SmolLM2
}
TOKENS = {"5M": 4096, "30M": 2048, "135M": 512}  # padded tokens of a forward
LENGTH, PROMPT = 128, 32  # tokens of a sequence and of its prompt


@dataclass(frozen=True)
class Measured:
    """Bytes: as planned and as measured. tokens: of a forward. recomputed: checkpointing."""

    model: str
    tokens: int
    recomputed: bool
    planned: float
    measured: int

    @property
    def ratio(self) -> float:
        return self.planned / self.measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=2, metavar=("MODEL", "RECOMPUTED"))
    asked = parser.parse_args()
    if asked.child:
        print(json.dumps(asdict(child(asked.child[0], asked.child[1] == "True"))))
        return
    print(f"torch {metadata.version('torch')}, one thread, load {os.getloadavg()[0]:.1f}")
    print(
        f"{'model':8}{'tokens':>8}  {'activations':12}{'planned MB':>12}"
        f"{'measured MB':>12}{'ratio':>8}"
    )
    for model in MODELS:
        for recomputed in (False, True):
            told = measure(model, recomputed)
            how = "recomputed" if recomputed else "kept"
            print(
                f"{model:8}{told.tokens:8,}  {how:12}{told.planned / 1e6:12,.0f}"
                f"{told.measured / 1e6:12,.0f}{told.ratio:8.2f}",
                flush=True,
            )


def measure(model: str, recomputed: bool) -> Measured:
    """In a process of its own, on one thread."""
    # Large blocks go back to the system when they are freed: what is held is what is counted.
    alone = {"OMP_NUM_THREADS": "1", "MALLOC_MMAP_THRESHOLD_": "65536"}
    done = subprocess.run(
        [sys.executable, __file__, "--child", model, str(recomputed)],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | alone,
    )
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def child(name: str, recomputed: bool) -> Measured:
    import psutil
    import torch
    from memory import peak

    from exgrpo.plan.memory import training_memory

    torch.set_num_threads(1)
    updated("5M", recomputed, tokens=LENGTH, updates=1)  # loads what a first update loads
    before = psutil.Process().memory_info().rss
    case = updated(name, recomputed, TOKENS[name], updates=2)
    most = peak()
    memory = training_memory(case)
    rollout = next(phase for phase in memory.phases if phase.name == "rollout")
    planned = memory.always.bytes + max(
        phase.bytes for phase in memory.phases if phase is not rollout
    )
    return Measured(name, TOKENS[name], recomputed, planned, most - before)


def updated(name: str, recomputed: bool, tokens: int, updates: int) -> "Case":
    """Make model, optimiser and rows, update so often; returns the plan's case of it."""
    import torch
    from accelerate import Accelerator
    from transformers import LlamaConfig, LlamaForCausalLM

    from exgrpo.hardware import Hardware
    from exgrpo.plan.memory import Case, Lengths
    from exgrpo.plan.shape import shape_from
    from exgrpo.scorer import Scorer
    from exgrpo.settings import RunSettings
    from exgrpo.update import Learner, update_policy

    layers, width, inner, heads, kv_heads, vocabulary = MODELS[name]
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=2 * LENGTH,
        tie_word_embeddings=True,
    )
    torch.manual_seed(0)
    policy = LlamaForCausalLM(config).eval()
    per_forward = tokens // LENGTH
    settings = RunSettings.model_validate(
        {
            "study": "plan",
            "arm": "exgrpo",
            "seed": 0,
            "rollout": {"group_size": 3, "max_new_tokens": LENGTH - PROMPT},
            "batch": {"questions": per_forward, "updates": 1, "micro_batch_tokens": tokens},
            "experience": {"replay": "trajectory", "start": "at_once"},
            "optimiser": {"learning_rate": 1e-6},
        }
    )
    hardware = Hardware(title="one process", activation_checkpointing=recomputed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    learner = Learner(
        Scorer(policy, recomputed), optimiser, Accelerator(cpu=True), hardware=hardware
    )
    rows = made_rows(per_forward, vocabulary)
    for _ in range(updates):
        update_policy(rows, settings, "none", learner)
    lengths = Lengths(PROMPT, LENGTH - PROMPT, PROMPT, LENGTH - PROMPT)
    return Case(shape_from(config.to_dict()), settings, hardware, lengths)


def made_rows(groups: int, vocabulary: int) -> "list[Row]":
    """Groups of one replayed and two fresh rows of random tokens, all with an advantage."""
    import numpy as np

    from exgrpo.batch import Row
    from exgrpo.grading import Verdict
    from exgrpo.policy import TokenSequence
    from exgrpo.questions import Question

    rng = np.random.default_rng(0)
    rows = []
    for group in range(groups):
        for slot in range(3):
            ids = rng.integers(vocabulary, size=LENGTH).tolist()
            floats = np.full(LENGTH - PROMPT, -np.log(vocabulary), np.float32)
            rows.append(
                Row(
                    id=f"{group}:{slot}",
                    group=group,
                    slot=slot,
                    question=Question(f"question {group}", "1", 1, "made"),
                    sequence=TokenSequence(ids[:PROMPT], ids[PROMPT:]),
                    behaviour_logprobs=floats,
                    previous_logprobs=floats,
                    entropies=-floats,
                    finish="length",
                    source=f"{group}:{slot}" if slot == 0 else None,
                    birth_step=0,
                    response="",
                    verdict=Verdict(correct=False, extracted=None, format_ok=False, reason="made"),
                    advantage=1.0 if slot else -0.5,
                )
            )
    return rows


if __name__ == "__main__":
    main()
