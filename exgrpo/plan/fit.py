"""Whether a run fits on its GPUs, and which settings would make it fit where it does not."""

import dataclasses
from collections.abc import Iterator

from exgrpo.plan.memory import (
    GB,
    PAGED,
    Case,
    Memory,
    cache_bytes,
    engine_share,
    engine_weights,
    sequences_at_once,
    training_memory,
)

GPUS = (1, 2, 4, 8, 16, 32, 64)
TOKENS = (131_072, 65_536, 32_768, 16_384, 8_192, 4_096, 2_048, 1_024)
SHARES = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)

Change = tuple[str, Case]


def problem(case: Case) -> str | None:
    """What is too big, in words; None where everything fits or no GPU's memory is known."""
    limit = case.hardware.gpu_memory
    if limit is None or not case.on_gpu:
        return None
    if case.vllm and sequences_at_once(case) < 1:
        return (
            f"vLLM's share of a GPU, {engine_share(case) / GB:,.1f} GB, {PAGED:.0%} of it for use, "
            f"does not hold its weights ({engine_weights(case) / GB:,.1f} GB) and the cache of one "
            f"sequence of {case.lengths.longest:,} tokens"
        )
    memory = training_memory(case)
    if memory.peak <= limit * GB:
        return None
    return f"{_largest(memory)}, in all {memory.peak / GB:,.1f} GB on a GPU of {limit:g} GB"


def _largest(memory: Memory) -> str:
    """The greatest items of the greatest phase."""
    phase = max(memory.phases, key=lambda each: each.bytes)
    items = sorted((*memory.always.items, *phase.items), key=lambda item: -item.bytes)
    told = ", ".join(f"{item.what} {item.bytes / GB:,.1f} GB" for item in items[:3])
    return f"too much is held in the {phase.name}: {told}"


def remedies(case: Case) -> list[str]:
    """Single changes that make the case fit; else the fewest in this order that do together."""
    alone = [told for told, changed in _changes(case) if problem(changed) is None]
    if alone:
        return alone
    taken: list[str] = []
    while problem(case) is not None:
        better = next(_lowering(case), None)
        if better is None:
            return []
        told, case = better
        taken.append(told)
    return [" and ".join(taken)]


def excess(case: Case) -> float:
    """Bytes by which the GPU's memory and vLLM's share are too small."""
    limit = (case.hardware.gpu_memory or 0) * GB
    over = max(0.0, training_memory(case).peak - limit)
    if not case.vllm:
        return over
    needed = engine_weights(case) + cache_bytes(case)
    return over + max(0.0, needed - PAGED * engine_share(case))


def _lowering(case: Case) -> Iterator[Change]:
    """The changes that bring it nearer to fitting, those that make it fit in front."""
    before = excess(case)
    changes = [each for each in _changes(case) if excess(each[1]) < before]
    yield from (each for each in changes if problem(each[1]) is None)
    yield from changes


def _changes(case: Case) -> Iterator[Change]:
    """What may be changed, the cheapest first; of each the mildest value that fits, else the last.

    None changes what a run is, but for the last ones.
    """
    hardware = case.hardware

    def other(**values: object) -> Case:
        checked = type(hardware).model_validate({**hardware.model_dump(), **values})
        return dataclasses.replace(case, hardware=checked)

    if not hardware.activation_checkpointing:
        yield "activation_checkpointing: true", other(activation_checkpointing=True)
    longest = case.lengths.longest  # comes alone in a forward that has room for fewer
    fewer = [count for count in (*TOKENS, longest) if longest <= count < case.micro_batch_tokens]
    yield from _mildest("micro_batch_tokens", [(n, other(micro_batch_tokens=n)) for n in fewer])
    if hardware.weights == "replicated" and case.processes > 1:
        yield "weights: sharded", other(weights="sharded")
    if case.vllm and case.on_gpu:
        shares = [share for share in SHARES if share != hardware.engine_memory]
        if hardware.engine == "colocated":
            yield from _mildest("engine_memory", [(s, other(engine_memory=s)) for s in shares])
            gpus = 2 * hardware.processes
            yield (
                f"engine: own, with gpus: {gpus}",
                other(engine="own", gpus=gpus, engine_memory=0.9),
            )
        else:
            yield from _mildest("engine_memory", [(s, other(engine_memory=s)) for s in shares])
    each = 2 if hardware.engine == "own" and case.vllm else 1
    more = [count for count in GPUS if count > case.processes]
    yield from _mildest(
        f"weights: sharded, with {each} GPU(s) a process and processes",
        [(n, other(nodes=1, processes=n, gpus=each * n, weights="sharded")) for n in more],
    )
    if not case.vllm:
        rows = [size for size in (512, 256, 128, 64, 32, 16) if size < case.rows_sampled]
        yield from _mildest(
            "rollout.batch, a setting of the study", [(n, _batch(case, n)) for n in rows]
        )


def _mildest(key: str, options: list[tuple[object, Case]]) -> Iterator[Change]:
    for value, changed in options:
        if problem(changed) is None:
            yield f"{key}: {value}", changed
            return
    if options:
        value, changed = options[-1]
        yield f"{key}: {value}", changed


def _batch(case: Case, rows: int) -> Case:
    rollout = case.settings.rollout.model_copy(update={"batch": rows})
    return dataclasses.replace(case, settings=case.settings.model_copy(update={"rollout": rollout}))
