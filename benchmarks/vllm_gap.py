"""How far vLLM's log-probabilities are from the trainer's, for a model folder and each dtype.

`python benchmarks/vllm_gap.py FOLDER`, where vLLM is installed (docs/vllm.md).
"""

import argparse

import numpy as np
import torch

from exgrpo.hardware import CPU
from exgrpo.policy import TokenSequence, load_policy
from exgrpo.processes import ALONE
from exgrpo.rollout import Sampling
from exgrpo.rollout.engines import engine_of
from exgrpo.scorer import Scorer, score_sequences
from exgrpo.settings import RunSettings

PROMPTS = (
    "What is 12 + 7? Think step by step.",
    "The capital of France is",
    "Solve 3x = 9.",
    "Once upon a time",
)
SAMPLES, TOKENS = 2, 48
DTYPES = (("float32", "float32"), ("bfloat16", "float32"), ("bfloat16", "bfloat16"))


def gaps(folder: str, engine_dtype: str, trainer_dtype: str) -> np.ndarray:
    """|trainer - vLLM|, nat, of every token sampled at temperature 1, [tokens]."""
    model, tokenizer = load_policy(folder, trainer_dtype)
    settings = RunSettings.model_validate(
        {
            "study": "gap", "arm": "gap", "seed": 0, "training": {"dtype": trainer_dtype},
            "rollout": {"engine": "vllm", "engine_dtype": engine_dtype, "batch": 16},
        }
    )  # fmt: skip
    prompts = [tokenizer(text).input_ids for text in PROMPTS]
    seeds = [[SAMPLES * number + k for k in range(SAMPLES)] for number in range(len(prompts))]
    scorer = Scorer(model)
    with engine_of(settings, CPU, scorer, model, folder, ALONE, prompts) as engine:
        engine.sync()
        how = Sampling(1.0, TOKENS, (), batch=16)
        groups = engine.generate(prompts, seeds, how, lambda numbers, rollouts: None)
    rollouts = [rollout for own in groups for rollout in own]
    asked = [prompt for prompt in prompts for _ in range(SAMPLES)]
    pairs = zip(asked, rollouts, strict=True)
    sequences = [TokenSequence(prompt, rollout.token_ids) for prompt, rollout in pairs]
    scores = score_sequences(scorer, sequences, 1.0, 1024)
    return np.concatenate(
        [
            np.abs(score.logprobs.numpy() - rollout.logprobs)
            for score, rollout in zip(scores, rollouts, strict=True)
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    folder = parser.parse_args().folder
    torch.set_num_threads(1)
    for engine, trainer in DTYPES:
        found = gaps(folder, engine, trainer)
        print(
            f"engine {engine}, trainer {trainer}: {len(found)} tokens, mean {found.mean():.2g}, "
            f"greatest {found.max():.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
