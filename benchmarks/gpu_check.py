"""A short check of a GPU: speed, share of peak, memory against the plan, bfloat16 against float32.

    python benchmarks/gpu_check.py [--output gpu.json] [--quick]

Two random models of Llama's architecture (that of `tiny`, and one of 186 M parameters) train for
ten steps on arithmetic chains, by the real trainer, in bfloat16 and in float32; with vLLM too where
it can be imported. Each is a process of its own. What counts as work is two operations a weight and
token forward and four backward, and attention over what a causal model sees; the peak is that of a
large matrix product of the same type in the same process. `exgrpo plan --measured gpu.json` reads
the file. --quick: a smaller model and three steps, to try the script on a CPU.
"""

import argparse
import dataclasses
import importlib.util
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import polars as pl
import psutil
import torch
import transformers
from accelerate import Accelerator
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM
from workload import seconds_of, wrapped

from exgrpo import chain, step
from exgrpo.batch import Row
from exgrpo.hardware import Hardware
from exgrpo.plan.memory import CUDA_CONTEXT, Case, Lengths, training_memory
from exgrpo.plan.shape import ModelShape, read_shape
from exgrpo.policy import load_policy, save_policy
from exgrpo.pretraining import make_tokenizer
from exgrpo.questions import Question
from exgrpo.scorer import Scorer
from exgrpo.settings import RunSettings
from exgrpo.tables.manifest import live_parts
from exgrpo.trainer import train
from exgrpo.update import Learner, UpdateReport, update_policy

MODELS = {  # layers, width, inner width, heads, key-value heads, vocabulary
    "tiny": (3, 96, 256, 4, 4, 20),
    "186M": (12, 1024, 2816, 16, 8, 32_000),
    "3M": (4, 256, 704, 4, 4, 64),
}
RUNS = {False: ("tiny", "186M"), True: ("tiny", "3M")}  # by --quick
DTYPES = ("bfloat16", "float32")
SKIPPED = 2  # steps that warm up
LEVEL = 5  # of every question, so that prompts are of one length
TOLERANCE = {"bfloat16": 0.05, "float32": 1e-3}  # of loss and gradient norm, relative
ENGINE_SHARE = 0.3
SMALL = 500e6  # bytes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="JSON for `exgrpo plan --measured`")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--child", nargs=3, metavar=("MODEL", "DTYPE", "ENGINE"))
    asked = parser.parse_args()
    if asked.child:
        transformers.logging.set_verbosity_error()
        transformers.logging.disable_progress_bar()
        print(json.dumps(check(*asked.child, quick=asked.quick)))
        return
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    print(f"{device}, torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    wanted = [(name, dtype, "torch") for name in RUNS[asked.quick] for dtype in DTYPES]
    if importlib.util.find_spec("vllm"):
        wanted += [(name, "bfloat16", "vllm") for name in RUNS[asked.quick]]
    else:
        print("vLLM cannot be imported here: only the torch engine is measured")
    found = [in_child(*each, quick=asked.quick) for each in wanted]
    for each in found:
        show(each)
    if asked.output:
        asked.output.write_text(json.dumps({"device": device, "models": found}, indent=2) + "\n")
        print(f"written: {asked.output}")


def in_child(name: str, dtype: str, engine: str, quick: bool) -> dict[str, Any]:
    told = [sys.executable, __file__, "--child", name, dtype, engine, *["--quick"] * quick]
    # On a CPU, so that freed memory goes back and what is held is what is counted.
    done = subprocess.run(
        told, stdout=subprocess.PIPE, text=True, check=True,
        env={"MALLOC_MMAP_THRESHOLD_": "65536", **os.environ},
    )  # fmt: skip
    values: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return values


def show(found: dict[str, Any]) -> None:
    print(f"\n{found['model']}, {found['parameters']:,} parameters, {found['dtype']}, ", end="")
    print(f"{found['engine']} samples; best product {found['peak_flops'] / 1e9:,.0f} GFLOP/s")
    for part in ("rollout", "update"):
        rate, share = found[f"{part}_tokens_per_second"], found[f"{part}_share_of_peak"]
        print(f"  {part:8}{rate:14,.0f} tokens/s{share:9.2%} of the peak")
    if found["planned_bytes"]:
        ratio = found["planned_bytes"] / found["measured_bytes"]
        print(
            f"  memory  {found['measured_bytes'] / 1e6:14,.0f} MB at most; planned "
            f"{found['planned_bytes'] / 1e6:,.0f} MB, {ratio:.2f} times as much"
        )
        if not torch.cuda.is_available() and found["planned_bytes"] < SMALL:
            print("          (too little to compare: what libraries load meanwhile counts too)")
    print(
        f"  ratio of fresh tokens before any update: mean - 1 {found['ratio_mean'] - 1:.1e}, "
        f"greatest |log ratio| {found['log_ratio_max']:.1e}"
    )
    for what in ("loss", "gradient_norm"):
        here, cpu = found[what], found[f"{what}_on_cpu"]
        off = abs(here - cpu) / abs(cpu)
        verdict = "equal" if off <= TOLERANCE[found["dtype"]] else "NOT EQUAL"
        print(
            f"  first update's {what.replace('_', ' ')} {here:.6g}; on the CPU in float32 "
            f"{cpu:.6g}: {verdict} within {TOLERANCE[found['dtype']]:g} ({off:.1e})"
        )


def check(name: str, dtype: str, engine: str, quick: bool) -> dict[str, Any]:
    """Train a model for some steps; all that was measured, by name."""
    on_gpu = torch.cuda.is_available()
    settings, hardware = settings_of(dtype, engine, quick), hardware_of(on_gpu)
    with tempfile.TemporaryDirectory() as place:
        base = Path(place) / "base"
        make_model(name, base)
        shape = read_shape(base / "config.json")
        questions = make_questions(settings.batch.questions * settings.training.steps)
        before = psutil.Process().memory_info().rss
        steps, first = train_steps(settings, base, questions, Path(place), hardware)
        measured = memory_peak() - (0 if on_gpu else before)
        ratios = log_ratios(Path(place) / "log")
        ours, cpu = (
            update_again(settings_of(kind, engine, quick), base, first, only_cpu)
            for kind, only_cpu in ((dtype, False), ("float32", True))
        )
    prompt = len(questions[0].prompt_ids)
    response = settings.rollout.max_new_tokens
    case = Case(shape, settings, hardware, Lengths(prompt, response, prompt, response))
    rollout = statistics.median(row["sampled_tokens"] / row["rollout_seconds"] for row in steps)
    sequences = settings.batch.questions * settings.rollout.group_size
    taken = statistics.median(row["update_seconds"] for row in steps)
    trained = statistics.mean(row["trained_tokens"] for row in steps) + sequences * prompt
    peak = product_rate(dtype)
    forward = forward_flops(shape, trained / sequences, trained / sequences - prompt)
    # Attention in CPU's bfloat16 is not the fused one that the plan is of; vLLM is another process.
    comparable = engine == "torch" and (on_gpu or dtype == "float32")
    planned = training_memory(case).peak - on_gpu * CUDA_CONTEXT if comparable else None
    return {
        "model": name,
        "parameters": shape.parameters,
        "dtype": dtype,
        "engine": engine,
        "peak_flops": peak,
        "rollout_tokens_per_second": rollout,
        "rollout_share_of_peak": rollout * forward / (trained / sequences) / peak,
        "update_tokens_per_second": trained / taken,
        "update_share_of_peak": 3 * sequences * forward / taken / peak,
        "measured_bytes": measured,
        "planned_bytes": planned,
        "ratio_mean": float(ratios.exp().mean()),
        "log_ratio_max": float(ratios.abs().max()),
        "loss": ours.losses[0],
        "loss_on_cpu": cpu.losses[0],
        "gradient_norm": ours.norms[0].total,
        "gradient_norm_on_cpu": cpu.norms[0].total,
    }


def settings_of(dtype: str, engine: str, quick: bool) -> RunSettings:
    tokens = 32 if quick else 256
    return RunSettings.model_validate(
        {
            "study": "gpu_check",
            "arm": "on_policy",
            "seed": 0,
            "rollout": {"max_new_tokens": tokens, "group_size": 8, "engine": engine},
            # A random model is never right: what it learns from is the entropy bonus.
            "objective": {"entropy_bonus": 0.001},
            "batch": {
                "questions": 4 if quick else 32, "updates": 1,
                "micro_batch_tokens": 1024 if quick else 16_384,
            },
            "training": {
                "steps": SKIPPED + 1 if quick else 10, "checkpoint_every": 100, "dtype": dtype,
            },
            "evaluation": {"every": 100, "validation_samples": 1, "max_new_tokens": 1},
        }
    )  # fmt: skip


def hardware_of(on_gpu: bool) -> Hardware:
    if not on_gpu:
        return Hardware(title="the processors of this machine")
    memory = torch.cuda.get_device_properties(0).total_memory / 1e9
    return Hardware(title="one GPU", gpus=1, gpu_memory=memory, engine_memory=ENGINE_SHARE)


def make_model(name: str, folder: Path) -> None:
    """A random model with the tokenizer of the built-in task, whose vocabulary may be smaller."""
    layers, width, inner, heads, kv_heads, vocabulary = MODELS[name]
    torch.manual_seed(0)
    tokenizer = make_tokenizer()
    ends = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    config = LlamaConfig(
        vocab_size=vocabulary,
        hidden_size=width,
        intermediate_size=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        **ends,
    )
    model = LlamaForCausalLM(config)
    model.generation_config = GenerationConfig(do_sample=True, **ends)
    save_policy(model, tokenizer, folder)


def make_questions(count: int) -> list[Question]:
    """Different chains of one level, with their prompts."""
    rng, tokenizer = random.Random(0), make_tokenizer()
    texts: dict[str, None] = {}
    while len(texts) < count + 1:  # one for validation
        texts[chain.draw(LEVEL, rng)] = None
    return [
        Question(
            text, chain.solve(text), LEVEL, chain.SOURCE, "boxed", tuple(tokenizer(text).input_ids)
        )
        for text in texts
    ]


def train_steps(
    settings: RunSettings, base: Path, questions: list[Question], folder: Path, hardware: Hardware
) -> tuple[list[dict[str, Any]], list[Row]]:
    """The log rows of the steps after those that warm up, and the batch of the first step."""
    rows: list[dict[str, Any]] = []
    batches: list[list[Row]] = []

    def keep(original: Any, batch: list[Row], *rest: Any) -> UpdateReport:
        batches.append(batch)
        report: UpdateReport = original(batch, *rest)
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # so that its time is the step's own
        return report

    with wrapped(step, "update_policy", keep):
        train(
            settings,
            str(base),
            questions[1:],
            questions[:1],
            folder,
            report=rows.append,
            heartbeat=lambda progress: None,
            hardware=hardware,
        )
    return rows[SKIPPED:], batches[0]


def update_again(
    settings: RunSettings, base: Path, rows: list[Row], only_cpu: bool
) -> UpdateReport:
    """The first update anew from the same weights; every second row is taken for a right one."""
    policy, _ = load_policy(str(base), settings.training.dtype)
    accelerator = Accelerator(cpu=only_cpu or not torch.cuda.is_available())
    device = torch.device("cpu") if only_cpu else accelerator.device
    policy.to(device)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-6)
    learner = Learner(Scorer(policy), optimiser, accelerator)
    told = [dataclasses.replace(row, advantage=0.5 - row.slot % 2) for row in rows]
    return update_policy(told, settings, "fresh", learner)


def log_ratios(log: Path) -> torch.Tensor:
    """Of every fresh token of the first step: log-probability in the update less when sampled."""
    parts = [part for part in live_parts(log) if part.table == "tokens"]
    frame = pl.concat([pl.read_parquet(log / part.path, glob=False) for part in parts])
    first = frame.filter(pl.col("step") == 1).select(
        (pl.col("logprobs").explode() - pl.col("behaviour_logprobs").explode()).alias("gap")
    )
    return torch.from_numpy(first["gap"].to_numpy().copy())


def memory_peak() -> int:
    """Bytes: of the GPU what torch allocated, else the most that this process ever held."""
    from memory import peak

    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated()
    return peak()


def forward_flops(shape: ModelShape, length: float, response: float) -> float:
    """Operations of a forward over one sequence that no implementation could leave out."""
    body = 2 * (shape.matrices - shape.embedding) * length
    attention = 2 * shape.num_hidden_layers * shape.query_size * length**2
    return body + 2 * shape.embedding * response + attention


def product_rate(dtype: str) -> float:
    """Operations a second of the best of some large matrix products."""
    on_gpu = torch.cuda.is_available()
    size = 8192 if on_gpu else 1024
    kind, device = getattr(torch, dtype), "cuda" if on_gpu else "cpu"
    left, right = (torch.randn(size, size, device=device).to(kind) for _ in range(2))

    def product() -> None:
        torch.nn.functional.linear(left, right)
        if on_gpu:
            torch.cuda.synchronize()

    product()
    return 2 * size**3 / min(seconds_of(product) for _ in range(10))


if __name__ == "__main__":
    main()
