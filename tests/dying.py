"""A small real study whose training runs in processes of its own, killed where a test says.

The processes are forked from a server that has loaded everything, so that each starts at once.
What kills them is put around functions of the product here; the product knows nothing of it.
"""

import functools
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet
import torch
import yaml

import exgrpo.checkpoint
import exgrpo.records
import exgrpo.step
import exgrpo.trainer
import pipeline.train
from exgrpo.studies import Study, load_study
from exgrpo.tables.manifest import MANIFEST
from pipeline.base_model import make_base_model
from pipeline.questions import make_questions

CONFIG = Path(__file__).resolve().parents[1] / "config"
SETTINGS: dict[str, Any] = {
    "questions": {
        "train": 10,
        "validation": 3,
        "test_id": 1,
        "test_ood": 1,
        "max_level": 2,
        "max_ood_level": 3,
    },
    "rollout": {"group_size": 4, "max_new_tokens": 20},
    "batch": {"questions": 4, "micro_batch_tokens": 200},
    "experience": {"start": "at_once"},
    "optimiser": {"learning_rate": 1e-3},
    "training": {"steps": 12, "checkpoint_every": 2},
    "evaluation": {"every": 3, "validation_samples": 2, "max_new_tokens": 20},
}


def small_study(folder: Path, base: str, arm: str = "exgrpo", **sections: dict[str, Any]) -> Study:
    """Study `small` of one run of an arm, in `folder/config`; its first stages are done."""
    names = {**SETTINGS, **sections, "base": {"path": base}}
    settings = {name: {**SETTINGS.get(name, {}), **names[name]} for name in names}
    content = {"title": "small", "arms": [arm], "seeds": [0], "settings": settings}
    (folder / "config" / "studies").mkdir(parents=True)
    for name in ("arms", "hardware"):
        (folder / "config" / name).symlink_to(CONFIG / name)
    (folder / "config" / "studies" / "small.yaml").write_text(yaml.safe_dump(content))
    study = load_study("small", folder / "config")
    make_base_model(study, folder / "results", threads=1)
    make_questions(study, folder / "results", folder / "config")
    return study


def run_folder(folder: Path) -> Path:
    """Where the one run of a small study is."""
    (run,) = load_study("small", folder / "config").runs
    return folder / "results" / "small" / "runs" / run


@dataclass(frozen=True)
class Death:
    """Where a process dies: at the `count`th time that it comes to `moment`, or after `seconds`.

    how: before the call, after it, or half way, where that can be told.
    """

    moment: str = ""
    how: str = "before"
    count: int = 1
    seconds: float | None = None


# moment -> the owner and the name of the function that it is about
MOMENTS: dict[str, tuple[Any, str]] = {
    "rollout": (exgrpo.step, "sample_and_grade"),
    "scoring": (exgrpo.step, "score_sequences"),
    "update": (exgrpo.step, "update_policy"),
    "optimiser step": (torch.optim.AdamW, "step"),
    "validation": (exgrpo.trainer, "evaluate"),
    "flush": (exgrpo.records.Recorder, "flush"),
    "part": (pyarrow.parquet, "write_table"),
    "rename": (Path, "replace"),
    "manifest line": (exgrpo.records.Recorder, "_append"),
    "checkpoint": (exgrpo.checkpoint, "save"),
    "checkpoint's file": (exgrpo.checkpoint, "_write"),
    "whole file": (Path, "write_bytes"),
    "old file": (Path, "unlink"),
    "run.json": (pipeline.train, "write_json"),
    "final model": (exgrpo.trainer, "save_policy"),
    "done": (pipeline.train, "mark_done"),
}


def half_a_file(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content[: len(content) // 2])


def half_a_checkpoint(path: Path, state: dict[str, Any]) -> None:
    write_checkpoint(path, state)
    os.truncate(path, path.stat().st_size // 2)


def half_a_line(recorder: exgrpo.records.Recorder, line: dict[str, Any]) -> None:
    with (recorder.log / MANIFEST).open("a") as file:
        file.write(str(line)[: len(str(line)) // 2])


write_checkpoint = exgrpo.checkpoint._write  # as it is before a death is arranged at it
HALVES: dict[str, Callable[..., None]] = {
    "checkpoint's file": half_a_checkpoint,
    "whole file": half_a_file,
    "manifest line": half_a_line,
}


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arrange(death: Death) -> None:
    """See to it that this process dies so."""
    if death.seconds is not None:
        timer = threading.Timer(death.seconds, kill)
        timer.daemon = True
        timer.start()
        return
    owner, name = MOMENTS[death.moment]
    function, left = getattr(owner, name), [death.count]

    @functools.wraps(function)
    def deadly(*arguments: Any, **more: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return function(*arguments, **more)
        if death.how == "half way":
            HALVES[death.moment](*arguments, **more)
        if death.how == "after":
            function(*arguments, **more)
        return kill()

    setattr(owner, name, deadly)


def in_child(folder: Path, target: Callable[..., None], *arguments: Any) -> int | None:
    """Call target(folder, *arguments) in a process of its own; returns its exit code."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["pipeline.train", "pipeline.base_model", "pipeline.questions"])
    process = context.Process(target=_quietly, args=(target, folder, *arguments))
    process.start()
    process.join(120)
    return process.exitcode


def _quietly(target: Callable[..., None], folder: Path, *arguments: Any) -> None:
    with (folder / "printed.txt").open("a") as printed:
        os.dup2(printed.fileno(), 1)
        os.dup2(printed.fileno(), 2)
    target(folder, *arguments)


def train_small(folder: Path, death: Death | None = None) -> None:
    """Train the run of a small study in this process, until it dies."""
    study = load_study("small", folder / "config")
    (run,) = study.runs
    if death:
        arrange(death)
    pipeline.train.train_run(study, run, folder / "results", threads=1)


def train_until(folder: Path, death: Death | None = None) -> bool:
    """Train the run of a small study in a process of its own. Returns whether it was killed."""
    code = in_child(folder, train_small, death)
    assert code in (0, -signal.SIGKILL), f"{death}: {(folder / 'printed.txt').read_text()}"
    return code != 0
