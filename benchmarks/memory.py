"""Peak memory of log-probabilities and entropies, forward and backward, at a large vocabulary.

    python benchmarks/memory.py

Ours (`exgrpo.policy.score_tokens`) against the plain way: logits of all tokens at once,
log_softmax, gather, entropy. A vocabulary of 151 936 on a trunk so small that the head is all
there is; both go backward through log-probabilities and entropies. Every measurement is a process
of its own: the most memory that it ever held, less what it held before the first forward.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the parent stays small: a child's peak starts from its parent's memory
    from torch import Tensor
    from transformers import PreTrainedModel

    from exgrpo.policy import TokenScores, TokenSequence

VOCABULARY, TOKENS = 151_936, 8_192
SEQUENCES = (1, 2, 4, 8, 16)  # that share the tokens
PLAIN_TOKENS = (1_024, 2_048, 4_096)  # the plain way needs about 3 GiB for each 1 024
EQUAL_AT = 512  # tokens; 2 sequences
WAYS = ("ours", "plain")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--child", nargs=3, metavar=("WAY", "TOKENS", "SEQUENCES"))
    asked = parser.parse_args()
    if asked.child:
        way, tokens, sequences = asked.child
        child(way, int(tokens), int(sequences), asked.threads)
        return
    load = os.getloadavg()[0]
    print(f"{asked.threads} threads, torch {metadata.version('torch')}, load {load:.1f}")
    print(f"{'way':8}{'tokens':>8}{'sequences':>11}{'peak MiB':>10}{'seconds':>9}", flush=True)
    for count in SEQUENCES:
        run("ours", TOKENS, count, asked.threads)
    for tokens in PLAIN_TOKENS:
        run("plain", tokens, 1, asked.threads)
    run("ours", PLAIN_TOKENS[-1], 1, asked.threads)
    run("equal", EQUAL_AT, 2, asked.threads)


def run(way: str, tokens: int, sequences: int, threads: int) -> None:
    """Print the line of a child; a child that the system ends for its memory is a result too."""
    told = [sys.executable, __file__, "--threads", threads, "--child", way, tokens, sequences]
    done = subprocess.run(list(map(str, told)))
    if done.returncode:
        print(f"{way:8}{tokens:8,}{sequences:11}  ended with {done.returncode}: too little memory?")


def child(way: str, tokens: int, sequences: int, threads: int) -> None:
    import torch

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = make_model(tokens // sequences)
    asked = make_sequences(tokens, sequences)
    if way == "equal":
        print_differences(model, asked)
        return
    before = peak()
    start = time.perf_counter()
    backward(way, model, asked)
    seconds = time.perf_counter() - start
    print(
        f"{way:8}{tokens:8,}{sequences:11}{(peak() - before) / 2**20:10,.0f}{seconds:9.1f}",
        flush=True,
    )


def peak() -> int:
    """The most memory that this process ever held, in bytes.

    Linux: `ru_maxrss` counts what the process that started this one held, too; VmHWM does not.
    """
    status = Path("/proc/self/status")
    if status.exists():
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(lines["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def make_model(longest: int) -> "PreTrainedModel":
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=1,
        num_attention_heads=4,
        max_position_embeddings=longest + 1,
        tie_word_embeddings=False,
    )
    model = LlamaForCausalLM(config).eval()
    for weight in model.parameters():  # so that what a training has anyway is in the baseline
        weight.grad = weight.new_ones(weight.shape).zero_()
    return model


def make_sequences(tokens: int, sequences: int) -> "list[TokenSequence]":
    import torch

    from exgrpo.policy import TokenSequence

    ids = torch.randint(VOCABULARY, (sequences, 1 + tokens // sequences)).tolist()
    return [TokenSequence(each[:1], each[1:]) for each in ids]


def backward(
    way: str, model: "PreTrainedModel", sequences: "list[TokenSequence]"
) -> "tuple[Tensor, Tensor]":
    """Scores of all tokens, without their graph; leaves the gradient of a sum in the weights."""
    from exgrpo.policy import score_tokens

    if way == "ours":
        scores = score_tokens(model, sequences, temperature=1.0, entropy_gradient=True)
    else:
        scores = plain_scores(model, sequences)
    (scores.logprobs.mean() + 0.1 * scores.entropies.mean()).backward()
    return scores.logprobs.detach(), scores.entropies.detach()


def plain_scores(model: "PreTrainedModel", sequences: "list[TokenSequence]") -> "TokenScores":
    import torch

    from exgrpo.policy import TokenScores

    ids = torch.tensor([each.prompt_ids + each.response_ids for each in sequences])
    log_softmax = model(input_ids=ids, use_cache=False).logits[:, :-1].log_softmax(-1)
    logprobs = log_softmax.gather(-1, ids[:, 1:, None])[..., 0]
    entropies = -(log_softmax.exp() * log_softmax).sum(-1)
    return TokenScores(logprobs.flatten(), entropies.flatten())


def print_differences(model: "PreTrainedModel", sequences: "list[TokenSequence]") -> None:
    """Largest difference between the two ways: of values in nat, of gradients as a share."""
    found = []
    for way in WAYS:
        model.zero_grad()
        values = backward(way, model, sequences)
        gradients = [each.grad for each in model.parameters() if each.grad is not None]
        found.append((values, gradients))
    (ours, our_gradients), (plain, plain_gradients) = found
    names = ("log-probabilities", "entropies")
    told = [
        f"{name} {(one - other).abs().max():.1e}"
        for name, one, other in zip(names, ours, plain, strict=True)
    ]
    apart = max(
        float((one - other).abs().max() / other.abs().max())
        for one, other in zip(our_gradients, plain_gradients, strict=True)
    )
    print(f"largest difference: {', '.join(told)} nat; gradients {apart:.1e} of the largest")


if __name__ == "__main__":
    main()
