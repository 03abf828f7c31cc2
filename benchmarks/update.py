"""The update alone: its share of the matrix-multiply peak, where the rest goes, and bfloat16.

    python benchmarks/update.py [--threads 1] [--results results]

The peak is that of a 2048 x 2048 product in this process. The update is that of a real first step
of `tiny`, done again and again on the same rows. What counts as work: three products a weight (one
forward, two backward) for every token of the rows with something to learn from, the head for
response tokens only, and attention over the tokens that a causal model sees; padding,
element-wise operations, the optimiser and the log count as time but not as work.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile
from transformers import PreTrainedModel
from workload import Workload, conditions, prepare, seconds_of, train_steps, wrapped

from exgrpo import step
from exgrpo.batch import Row
from exgrpo.update import Learner, UpdateReport

DTYPES = ("float32", "bfloat16")
SIZE = 2048  # of the product that measures the peak
REPEATS = 9

PARTS = {  # which part of the time an operation belongs to, by the start of its name
    "aten::mm": "matrix products",
    "aten::addmm": "matrix products",
    "aten::bmm": "attention",  # not fused, as for bfloat16 on a CPU
    "aten::_softmax": "attention",
    "aten::_scaled_dot_product": "attention",
    "aten::linalg_vector_norm": "norms",
    "aten::_foreach_norm": "norms",
    "aten::": "element-wise and copies",
}
OPTIMISER = "Optimizer.step"  # whatever happens inside of it is the optimiser's


@dataclass(frozen=True)
class Update:
    """A call of `update_policy`: its rows and learner, what it returned, the same call again."""

    rows: list[Row]
    learner: Learner
    report: UpdateReport
    again: Callable[[], UpdateReport]

    @property
    def learning(self) -> list[Row]:
        return [row for row in self.rows if row.advantage]


def main() -> None:
    workload = prepare(__doc__)
    peaks: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    taken: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    updates = {dtype: first_update(workload, dtype, updates=2) for dtype in DTYPES}
    for turn in range(1 + REPEATS):
        for dtype, update in updates.items():
            peak, seconds = product_rate(dtype), seconds_of(update.again)
            if turn:
                peaks[dtype].append(peak)
                taken[dtype].append(seconds)
    print(f"\n{'':10}{'peak GF/s':>10}{'update s':>10}{'tokens/s':>10}{'of peak':>9}{'padding':>9}")
    for dtype, update in updates.items():
        peak, seconds = max(peaks[dtype]), min(taken[dtype])
        rows = update.learning
        share = flops(update.learner.model, rows) / seconds / peak
        speed = sum(len(row.sequence) for row in rows) / seconds
        print(
            f"{dtype:10}{peak / 1e9:10.0f}{seconds:10.3f}{speed:10,.0f}{share:9.1%}"
            f"{padding(update):9.1%}"
        )
    print(f"best of {REPEATS}")
    faster = statistics.median(
        slow / fast for slow, fast in zip(taken["float32"], taken["bfloat16"], strict=True)
    )
    print(f"bfloat16: the update is {faster:.2f} times as fast (median of pairs)")
    for dtype, update in updates.items():
        print_profile(dtype, update)
    print("\nratios of fresh tokens before any update: policy scored now / as it was sampled")
    print(f"{'':10}{'mean - 1':>11}{'deviation':>11}{'min':>9}{'max':>9}{'tokens':>8}")
    for dtype in DTYPES:
        print_ratios(dtype, first_update(workload, dtype, updates=1))
    print(conditions())


def first_update(workload: Workload, dtype: str, updates: int) -> Update:
    """The update of the first step of a run, taken from the run itself."""
    calls: list[Update] = []

    def keep(original: Any, rows: list[Row], *rest: Any) -> UpdateReport:
        learner = next(each for each in rest if isinstance(each, Learner))
        again = partial(original, rows, *rest)
        report: UpdateReport = again()
        calls.append(Update(rows, learner, report, again))
        return report

    with wrapped(step, "update_policy", keep):
        train_steps(workload, 1, training={"dtype": dtype}, batch={"updates": updates})
    return calls[0]


def product_rate(dtype: str) -> float:
    """Operations a second of a large matrix product."""
    left, right = (torch.randn(SIZE, SIZE).to(getattr(torch, dtype)) for _ in range(2))
    left @ right
    return 2 * SIZE**3 / seconds_of(lambda: left @ right)


def flops(model: PreTrainedModel, rows: Sequence[Row]) -> float:
    """Operations of forward and backward over these rows that no implementation could leave out."""
    head = model.get_output_embeddings().weight.numel()
    matrices = sum(
        each.weight.numel() for each in model.modules() if isinstance(each, torch.nn.Linear)
    )
    tokens = sum(len(row.sequence) for row in rows)
    responses = sum(len(row.sequence.response_ids) for row in rows)
    # Scores and their sum over values: 2 products of length^2 / 2, 2 operations each, three times.
    attention = 6 * model.config.num_hidden_layers * model.config.hidden_size
    return 6 * ((matrices - head) * tokens + head * responses) + attention * sum(
        len(row.sequence) ** 2 for row in rows
    )


def padding(update: Update) -> float:
    """Share of the tokens that went through the model which are only padding."""
    seen = 0

    def count(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        nonlocal seen
        seen += inputs[0].numel()

    embedding = update.learner.model.get_input_embeddings()
    handle = embedding.register_forward_pre_hook(count)
    update.again()
    handle.remove()
    return 1 - sum(len(row.sequence) for row in update.learning) / seen


def print_profile(dtype: str, update: Update) -> None:
    """Where the time of one update goes, by the time that each operation spends itself."""
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        whole = 1e6 * seconds_of(update.again)
    parts: dict[str, float] = defaultdict(float)
    for event in profiler.events():
        if part := part_of(event):
            parts[part] += event.self_cpu_time_total
    parts["Python, autograd, the rest"] = whole - sum(parts.values())
    in_order = sorted(parts.items(), key=lambda item: -item[1])
    listed = ", ".join(f"{part} {spent / whole:.0%}" for part, spent in in_order)
    print(f"{dtype}, under the profiler: {listed}")


def part_of(event: FunctionEvent) -> str | None:
    """The part of an event's own time; None where that is Python's or the autograd engine's."""
    above: FunctionEvent | None = event
    while above is not None:
        if above.name.startswith(OPTIMISER):
            return "optimiser"
        above = above.cpu_parent
    return next((part for start, part in PARTS.items() if event.name.startswith(start)), None)


def print_ratios(dtype: str, update: Update) -> None:
    """How far the policy scored in the update is from the policy that sampled, both the same."""
    pairs = [
        (torch.tensor(update.report.rows[row.id].logprobs), torch.tensor(row.behaviour_logprobs))
        for row in update.learning
    ]
    now, then = (torch.cat(each).double() for each in zip(*pairs, strict=True))
    ratio = (now - then).exp()
    print(
        f"{dtype:10}{ratio.mean() - 1:11.1e}{ratio.std():11.1e}{ratio.min():9.4f}{ratio.max():9.4f}"
        f"{len(ratio):8,}"
    )


if __name__ == "__main__":
    main()
