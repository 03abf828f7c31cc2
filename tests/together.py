"""Several processes of one run, as a launcher starts them, but forked from a server at hand.

That spares them ten seconds of loading; `test_processes_launch.py` takes the real command.
"""

import multiprocessing
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import pipeline.train
from exgrpo import policy, scorer, trainer
from exgrpo.errors import PreemptedError, UserError
from exgrpo.hardware import Hardware
from exgrpo.studies import load_study
from pipeline.evaluate import evaluate_run

PRELOAD = ["pipeline.train", "pipeline.evaluate", "pipeline.base_model", "pipeline.questions"]
LIMIT = 300  # seconds after which processes that wait for each other are ended


def several(count: int, weights: str = "replicated", **more: Any) -> Hardware:
    """Hardware of so many processes on processors."""
    return Hardware.model_validate(
        {"title": "test", "processes": count, "weights": weights, **more}
    )


def together(hardware: Hardware, folder: Path, target: Callable[..., None], *more: Any) -> set[int]:
    """Call target(folder, hardware, *more) in each process; returns their exit codes.

    What they print goes to `printed-<rank>.txt` in the folder.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOAD)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    count = hardware.all_processes
    started = [
        context.Process(target=_launched, args=(rank, count, port, target, folder, hardware, *more))
        for rank in range(count)
    ]
    for process in started:
        process.start()
    for process in started:
        process.join(LIMIT)
    hanging = [process for process in started if process.is_alive()]
    for process in hanging:
        process.kill()
    assert not hanging, printed(folder)
    return {process.exitcode or 0 for process in started}


def printed(folder: Path) -> str:
    return "\n".join(path.read_text() for path in sorted(folder.glob("printed-*.txt")))


def _launched(
    rank: int, count: int, port: int, target: Callable[..., None], folder: Path, *more: Any
) -> None:
    with (folder / f"printed-{rank}.txt").open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    if count > 1:
        os.environ |= {
            "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count),
            "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
        }  # fmt: skip
    try:
        target(folder, *more)
    except (UserError, PreemptedError) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        os._exit(75 if isinstance(error, PreemptedError) else 2)


def train(
    folder: Path, hardware: Hardware, end: tuple[int, int] | None = None, kill: bool = False
) -> None:
    """Train the run of a small study. end: step and rank at which one process alone is told to."""
    study = load_study("small", folder / "config")
    (run,) = study.runs
    if end:
        step, rank = end
        train_step = trainer.train_step

        def told(context: Any, progress: Any, *more: Any) -> Any:
            if progress.step == step and context.processes.rank == rank:
                os.kill(os.getpid(), signal.SIGKILL if kill else signal.SIGTERM)
            return train_step(context, progress, *more)

        trainer.train_step = told  # type: ignore[assignment]
    pipeline.train.train_run(study, run, folder / "results", 1, hardware)


def train_in_parts(folder: Path, hardware: Hardware) -> None:
    """The same with few logits at a time; prints how often a forward comes to the head at most."""
    calls, most, score, score_tokens = 0, 0, policy._score, scorer.score_tokens

    def counted(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        return score(*arguments)

    def forward(*arguments: Any) -> Any:
        nonlocal calls, most
        calls = 0
        found = score_tokens(*arguments)
        most = max(most, calls)
        return found

    policy.HEAD_LOGITS = 500
    policy._score, scorer.score_tokens = counted, forward
    train(folder, hardware)
    print(f"head: most calls in a forward {most}", flush=True)


def train_broken(folder: Path, hardware: Hardware) -> None:
    """The same, with weights that are no numbers after the first update."""
    step = torch.optim.AdamW.step

    def breaks(optimiser: torch.optim.AdamW, closure: None = None) -> None:
        step(optimiser)
        with torch.no_grad():
            for weight in optimiser.param_groups[0]["params"]:
                weight.fill_(torch.nan)

    torch.optim.AdamW.step = breaks  # type: ignore[assignment, method-assign]
    train(folder, hardware)


def evaluate(folder: Path, hardware: Hardware, base: bool) -> None:
    """Evaluate the run of a small study, or its base model."""
    study = load_study("small", folder / "config")
    (run,) = study.runs
    evaluate_run(study, study.base_run if base else run, folder / "results", 1, hardware)
