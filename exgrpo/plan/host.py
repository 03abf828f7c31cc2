"""Memory of a node beside that of its GPUs, in bytes."""

from exgrpo.plan.memory import GB, Case, Item, Phase, training_memory

# Not measured on a GPU: Python, torch, the tokenizer; with vLLM a second process beside it.
PROCESS, PROCESS_WITH_ENGINE = 2 * GB, 5 * GB


def host_memory(case: Case, buffer_bytes: float) -> Phase:
    """Of one node at its worst: while models are loaded, or while a checkpoint is written.

    Every process reads the whole model before it keeps its share, and has the whole buffer. The
    first gathers weights, moments and reference to write them.
    """
    number, size = case.shape.parameters, case.weight_bytes
    copies = 2 if case.settings.objective.kl_reference else 1
    own = case.hardware.processes
    each = PROCESS_WITH_ENGINE if case.vllm else PROCESS
    items = [Item(f"{own} processes with their libraries (assumed)", own * each)]
    if case.on_gpu:
        loading, saving = own * copies * size * number, (2 + copies) * size * number
        items.append(Item("models while they are loaded, or a checkpoint", max(loading, saving)))
    else:
        items.append(Item("what training holds, see above", own * training_memory(case).peak))
    items.append(Item(f"the replay buffer, in {own} processes", own * buffer_bytes))
    return Phase("host", tuple(items))
