"""What a job asks a scheduler for, in the words of Snakemake and its plugin for SLURM."""

from exgrpo.hardware import Hardware


def requested(hardware: Hardware) -> dict[str, int | str]:
    """The resources of a training or an evaluation. What the hardware does not say is left out.

    `devices` are GPUs of a node, as Snakemake counts them on one machine. SLURM hears of them as
    `gres`, which is a node's too: its word `gpu` would be of all nodes. It is to start one task a
    node, which starts the others.
    """
    found: dict[str, int | str] = {}
    if hardware.gpus:
        found |= {"devices": hardware.gpus, "gres": f"gpu:{hardware.gpus}", "tasks_per_gpu": 0}
    if hardware.nodes > 1:
        found |= {"nodes": hardware.nodes, "tasks": hardware.nodes}  # of fewer tasks, fewer nodes
    if hardware.memory:
        found["mem_mb"] = round(1000 * hardware.memory)
    if hardware.hours:
        found["runtime"] = round(60 * hardware.hours)  # minutes
    return found
