"""Time and memory of the replay buffer at the paper's size, and how they grow with the buffer.

    python benchmarks/buffer.py [--trajectories 200000] [--tokens 2000]

A step is the paper's: 128 groups enter, 64 questions are drawn, all their trajectories are handed
over for scoring. Scoring itself, a forward over the candidates, is not part of it.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import psutil

from exgrpo.experience import ReplayBuffer, Trajectory
from exgrpo.questions import Question
from exgrpo.selection import bucket_weights, draw_questions
from exgrpo.settings import Batch, Buffer, Experience, RunSettings
from exgrpo.stream import FreshStream, take

K, GROUPS, DRAWN = 8, 128, 64  # [paper]
PER_QUESTION = 4  # stored on average, as in 200 000 trajectories of 46 000 questions
STEPS = 40  # measured at each size
RUN = RunSettings(study="benchmark", arm="buffer", seed=0, batch=Batch(questions=GROUPS))


Visit = tuple[str, int, list[Trajectory]]  # question, successes, what they are


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=200_000)
    parser.add_argument("--tokens", type=int, default=2_000)
    asked = parser.parse_args()
    sizes = [asked.trajectories // 100, asked.trajectories // 10, asked.trajectories]
    empty = memory()
    buffer = ReplayBuffer()
    groups = new_groups(asked.tokens)
    rows = []
    for size in sizes:
        while len(buffer.born) < size:
            enter(buffer, [next(groups)])
        rows.append(measure(buffer, size, groups))
    print_times(sizes, rows)
    print_memory(buffer, empty)
    print_checkpoint(buffer)


def new_groups(tokens: int) -> Iterator[Visit]:
    """Questions that the buffer does not know yet, with 1 to K - 1 right trajectories each."""
    rng = np.random.default_rng(0)
    number = 0
    while True:
        number += 1
        k = int(rng.integers(1, K))
        yield f"question {number}", k, [a_trajectory(number, i, tokens, rng) for i in range(k)]


def a_trajectory(number: int, place: int, tokens: int, rng: np.random.Generator) -> Trajectory:
    token_ids = rng.integers(0, 150_000, tokens, dtype=np.int32)
    logprobs = -rng.random(tokens, dtype=np.float32)
    name = f"{number}:{place}"
    question = f"question {number}"
    return Trajectory(name, question, [1, 2], token_ids, logprobs, 1, 0.3, True, name)


def enter(buffer: ReplayBuffer, visits: list[Visit]) -> None:
    for question, k, found in visits:
        buffer.observe(question, k, K, K, found)


def measure(buffer: ReplayBuffer, size: int, groups: Iterator[Visit]) -> dict[str, float]:
    """Median milliseconds a step of each part, with the buffer held at this size."""
    weights = bucket_weights(K, Experience())
    rng = np.random.default_rng(1)
    questions = [Question(f"{n}?", "1", None, "benchmark") for n in range(size // PER_QUESTION)]
    stream = FreshStream()
    seconds: dict[str, list[float]] = {}

    @contextmanager
    def timed(part: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        seconds.setdefault(part, []).append(time.perf_counter() - start)

    buffer.rules = Buffer(capacity=size)
    candidates = 0
    for step in range(STEPS):
        with timed("draw"):
            draws = draw_questions(buffer.buckets, DRAWN, weights, rng)
        with timed("hand over"):
            stored = [each for draw in draws for each in buffer.stored[draw.question]]
            sequences = [each.sequence.whole for each in stored]
        candidates += len(sequences)
        with timed("fresh"):
            take(stream, questions, buffer.retired, GROUPS - DRAWN, RUN)
        visits: list[Visit] = [(draw.question, int(rng.integers(1, K)), []) for draw in draws]
        visits += [next(groups) for _ in range(GROUPS - DRAWN)]
        with timed("enter"):
            enter(buffer, visits)
        with timed("evict"):
            buffer.age(step)
    buffer.rules = Buffer()
    milliseconds = {part: 1000 * statistics.median(values) for part, values in seconds.items()}
    return milliseconds | {"candidates": candidates / STEPS, "questions": len(buffer.buckets)}


def print_times(sizes: list[int], rows: list[dict[str, float]]) -> None:
    print("milliseconds a step (median), and how many times that of the smallest buffer\n")
    print(f"{'trajectories':16}" + "".join(f"{size:>18,}" for size in sizes))
    for name in rows[0]:
        cells = [f"{row[name]:10.2f} ({row[name] / rows[0][name]:4.1f}x)" for row in rows]
        print(f"{name:16}" + "".join(f"{cell:>18}" for cell in cells))


def print_memory(buffer: ReplayBuffer, empty: int) -> None:
    gc.collect()
    used, said = memory() - empty, buffer.bytes
    print(f"\nmemory: {used / 1e9:.2f} GB resident, buffer.bytes says {said / 1e9:.2f} GB", end="")
    print(f" ({used / said:.2f}x)")


def print_checkpoint(buffer: ReplayBuffer) -> None:
    """The buffer is emptied before it is restored, so that two and a state are never in memory."""
    start = time.perf_counter()
    state = buffer.state()
    packed = time.perf_counter() - start
    buffer.stored.clear()
    start = time.perf_counter()
    restored = ReplayBuffer.from_state(Buffer(), state)
    seconds = time.perf_counter() - start
    print(f"checkpoint: state {packed:.1f} s, from_state {seconds:.1f} s, ", end="")
    print(f"{len(restored.born):,} trajectories, {restored.bytes / 1e9:.2f} GB")


def memory() -> int:
    return int(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    main()
