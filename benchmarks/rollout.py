"""Rollouts alone: tokens a second of our engine against transformers' `generate` and vLLM.

    python benchmarks/rollout.py [--threads 1] [--results results]

The same model and prompts, 8 rollouts a question, temperature 1, no top-k or top-p, at most 64 new
tokens, each answer as long as it is: a token counts up to its answer's end token and not beyond.
Ours also returns each token's log-probability and entropy; the others return token ids. All take
turns; the median of the rounds counts. vLLM only where it is installed.
"""

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from transformers import (
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from workload import SEED, Workload, conditions, prepare

from exgrpo.policy import load_policy, stop_ids
from exgrpo.rollout import Sampling
from exgrpo.rollout.torch_engine import generate
from exgrpo.settings import Rollout

BATCHES = (64, 256, 512)  # rollouts generated together
ROUNDS = 5  # after one to warm up

Prompts = list[list[int]]
Engine = Callable[[Prompts, int], int]  # prompts and a seed -> tokens sampled


def main() -> None:
    workload = prepare(__doc__)
    engines = make_engines(workload)
    group = workload.settings.rollout.group_size
    ids = [list(question.prompt_ids) for question in workload.train]
    print(f"\n{'batch':>6} {'engine':14}{'tokens/s':>10}{'tokens':>9}   ours / it")
    for batch in BATCHES:
        speeds: dict[str, list[float]] = {name: [] for name in engines}
        tokens: dict[str, int] = {}
        for turn in range(1 + ROUNDS):
            prompts = ids[: batch // group]
            for name, engine in engines.items():
                start = time.perf_counter()
                tokens[name] = engine(prompts, SEED + turn)
                if turn:
                    speeds[name].append(tokens[name] / (time.perf_counter() - start))
        for name, values in speeds.items():
            ratios = [mine / other for mine, other in zip(speeds["ours"], values, strict=True)]
            print(
                f"{batch:6} {name:14}{statistics.median(values):10,.0f}{tokens[name]:9,}   "
                f"{statistics.median(ratios):.2f}"
            )
    print(conditions())


def make_engines(workload: Workload) -> dict[str, Engine]:
    rollout = workload.settings.rollout
    model, tokenizer = load_policy(workload.base)
    engines = {
        "ours": ours(model, tokenizer, rollout),
        "transformers": transformers_generate(model, tokenizer, rollout),
    }
    if importlib.util.find_spec("vllm"):
        engines["vLLM"] = vllm_generate(workload.base, rollout)
    else:
        print("vLLM is not installed: left out")
    return engines


def ours(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rollout: Rollout) -> Engine:
    ends = stop_ids(model, tokenizer)

    def run(prompts: Prompts, seed: int) -> int:
        sampling = Sampling(
            rollout.temperature,
            rollout.max_new_tokens,
            ends,
            batch=len(prompts) * rollout.group_size,
        )
        seeds = [
            [1_000_000 * seed + 1000 * index + slot for slot in range(rollout.group_size)]
            for index in range(len(prompts))
        ]
        groups = generate(model, prompts, seeds, sampling)
        return sum(len(each.token_ids) for group in groups for each in group)

    return run


def transformers_generate(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, rollout: Rollout
) -> Engine:
    ends = torch.tensor(stop_ids(model, tokenizer))
    sample: Any = model.generate  # torch types any attribute of a module as Tensor or Module
    config = GenerationConfig(
        do_sample=True,
        temperature=rollout.temperature,
        top_k=0,
        top_p=1.0,
        max_new_tokens=rollout.max_new_tokens,
        num_return_sequences=rollout.group_size,
        eos_token_id=ends.tolist(),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
    )

    def run(prompts: Prompts, seed: int) -> int:
        torch.manual_seed(seed)
        padded = tokenizer.pad({"input_ids": prompts}, padding_side="left", return_tensors="pt")
        output = sample(**padded, generation_config=config)
        is_end = torch.isin(output[:, padded["input_ids"].shape[1] :], ends).int()
        ended_before = is_end.cumsum(-1) - is_end
        return int((ended_before == 0).sum())

    return run


def vllm_generate(base: str, rollout: Rollout) -> Engine:
    from vllm import LLM, SamplingParams

    engine = LLM(model=base, dtype="float32", enable_prefix_caching=True)

    def run(prompts: Prompts, seed: int) -> int:
        sampling = SamplingParams(
            n=rollout.group_size,
            temperature=rollout.temperature,
            max_tokens=rollout.max_new_tokens,
            detokenize=False,
            seed=seed,
        )
        asked = [{"prompt_token_ids": ids} for ids in prompts]
        outputs = engine.generate(asked, sampling, use_tqdm=False)
        return sum(len(each.token_ids) for output in outputs for each in output.outputs)

    return run


if __name__ == "__main__":
    main()
