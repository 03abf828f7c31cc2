"""Small real trainings that are watched: weights before every update, and its gradient.

The whole of `exgrpo.trainer.train` runs. Only its optimiser is another: SGD, which keeps what it is
given, and whose learning rate may be 0.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch
import yaml
from lessons import QUESTIONS
from prompted import prompted
from test_trainer import read

from exgrpo import trainer
from exgrpo.grading import Grader
from exgrpo.policy import load_policy
from exgrpo.settings import RunSettings
from exgrpo.studies import load_study

Gradient = dict[str, torch.Tensor]  # a tensor for each named weight

CONFIG = Path(__file__).resolve().parents[1] / "config"
ARMS = sorted(path.stem for path in (CONFIG / "arms").glob("*.yaml"))
# A study in little: 3 of 4 questions a step, 8 rollouts each, ragged micro-batches.
LITTLE: dict[str, Any] = {
    "questions": QUESTIONS,
    "rollout": {"group_size": 8, "max_new_tokens": 20},
    "batch": {"questions": 3, "micro_batch_tokens": 150},
    "training": {"steps": 4, "checkpoint_every": 100, "dtype": "float64", "keep_best": True},
    "optimiser": {"grad_skip": None},
    "evaluation": {"every": 100, "validation_samples": 1, "max_new_tokens": 1},
}
REPLAY = {"replay": "trajectory", "start": "at_once"}
# What counts in steps or groups of a long run, brought down to the little one.
CAPS = {
    ("batch", "learning_groups"): 2,
    ("batch", "max_rounds"): 3,
    ("buffer", "max_age"): 2,
    ("buffer", "review_every"): 2,
}


def little(**sections: dict[str, Any]) -> RunSettings:
    """Settings over those of the study in little."""
    names = {**LITTLE, **sections}
    values = {name: {**LITTLE.get(name, {}), **sections.get(name, {})} for name in names}
    return RunSettings.model_validate({"study": "little", "arm": "arm", "seed": 0, **values})


def changed(settings: RunSettings, **sections: dict[str, Any]) -> RunSettings:
    """The settings with some other values."""
    values = settings.model_dump()
    for name, section in sections.items():
        values[name] |= section
    return RunSettings.model_validate(values)


def little_arms(folder: Path) -> dict[str, RunSettings]:
    """Every arm file over the study in little, started at the latest after its first step."""
    (folder / "studies").mkdir()
    (folder / "arms").symlink_to(CONFIG / "arms")
    study = {"title": "little", "arms": ARMS, "seeds": [0], "settings": LITTLE}
    (folder / "studies" / "little.yaml").write_text(yaml.safe_dump(study))
    return {run.arm: _capped(run) for run in load_study("little", folder).runs.values()}


def _capped(run: RunSettings) -> RunSettings:
    values = run.model_dump()
    if run.join.when == "all_failed":
        values["training"]["steps"] = 10  # until a whole group fails that has succeeded before
    for (section, key), most in CAPS.items():
        if isinstance(values[section][key], int):
            values[section][key] = min(values[section][key], most)
    if isinstance(values["experience"]["start"], float):
        values["experience"]["start"] = 0.0
    for key, least in (("share", 0.34), ("buffer_share", 0.5)):  # one of three places, of two
        values["experience"][key] = max(values["experience"][key], least)
    if values["training"]["reincarnate_at"]:
        values["training"]["reincarnate_at"] = 0.75
    if values["buffer"]["review_share"]:
        values["buffer"]["review_share"] = 1.0
    return RunSettings.model_validate(values)


@dataclass(frozen=True)
class Update:
    """What the optimiser was given: the weights before its step and their gradient, by name."""

    weights: Gradient
    gradient: Gradient


class Watcher(torch.optim.SGD):
    """SGD that keeps the weights and the gradient of each of its steps."""

    def __init__(self, parameters: Sequence[torch.nn.Parameter], learning_rate: float) -> None:
        super().__init__(parameters, lr=learning_rate)
        self.updates: list[tuple[list[torch.Tensor], list[torch.Tensor]]] = []

    def step(self, closure: Any = None) -> None:
        weights = self.param_groups[0]["params"]
        gradients = [weight.grad.clone() for weight in weights]
        self.updates.append(([weight.detach().clone() for weight in weights], gradients))
        super().step(closure)


@dataclass(frozen=True)
class WatchedRun:
    settings: RunSettings
    base: str
    folder: Path
    updates: list[Update]

    def table(self, name: str) -> pl.DataFrame:
        return read(self.folder, name)

    @cached_property
    def rows(self) -> pl.DataFrame:
        """Trajectories with their tokens, in the order of the batches."""
        keys = ["trajectory", "run", "step", "group", "slot"]
        return self.table("trajectories").join(self.table("tokens"), on=keys).sort(keys[2:])


def train(
    folder: Path,
    base: str,
    settings: RunSettings,
    grader: Grader,
    report: Callable[[dict[str, Any]], None] = lambda metrics: None,
    **more: Any,
) -> None:
    """`exgrpo.trainer.train` with a grader whose workers are kept; more: its further arguments."""
    splits = prompted(settings.questions, base, settings.prompt)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer.Grader, "of", lambda settings: contextlib.nullcontext(grader))
        trainer.train(
            settings,
            base,
            splits["train"],
            splits["validation"],
            folder,
            report,
            lambda progress: None,
            **more,
        )


def watched_run(
    folder: Path,
    base: str,
    settings: RunSettings,
    grader: Grader,
    learning_rate: float,
    **more: Any,
) -> WatchedRun:
    """Train with a watched SGD in place of AdamW."""
    watchers: list[Watcher] = []

    def watcher(parameters: Iterator[torch.nn.Parameter], **_: float) -> Watcher:
        watchers.append(Watcher(list(parameters), learning_rate))
        return watchers[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim, "AdamW", watcher)
        train(folder, base, settings, grader, **more)
    names = [name for name, _ in load_policy(base)[0].named_parameters()]
    updates = [
        Update(dict(zip(names, weights, strict=True)), dict(zip(names, gradients, strict=True)))
        for weights, gradients in watchers[0].updates
    ]
    return WatchedRun(settings, base, folder, updates)


Go = Callable[..., WatchedRun]


def trains_in(folder: Path, base: str, grader: Grader) -> Go:
    """A function that trains with some sections over the study in little, each time anew."""

    def go(learning_rate: float = 0.05, **sections: dict[str, Any]) -> WatchedRun:
        own = folder / str(len(list(folder.iterdir())))
        return watched_run(own, base, little(**sections), grader, learning_rate)

    return go
