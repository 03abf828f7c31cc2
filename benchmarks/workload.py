"""What the benchmarks of speed share: the study `tiny` to run, and how to run and time it.

Questions and base model are those of `results/tiny`; what is missing there is made first, by the
stages of the workflow.
"""

import argparse
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from exgrpo import questions
from exgrpo.questions import Question
from exgrpo.settings import RunSettings
from exgrpo.studies import Study, load_study
from exgrpo.trainer import train
from pipeline.base_model import make_base_model
from pipeline.files import (
    DONE,
    base_path,
    question_file,
    questions_hash,
    require_done,
    section_hash,
    study_folder,
)
from pipeline.questions import make_questions

STUDY, ARM, SEED = "tiny", "on_policy", 0


@dataclass(frozen=True)
class Workload:
    """Settings of the study's on-policy run of seed 0, its base model and training questions."""

    settings: RunSettings
    base: str
    train: list[Question]


@dataclass(frozen=True)
class StepTime:
    """A training step: wall time from the step before to this one, tokens sampled, its log row."""

    seconds: float
    tokens: int
    row: dict[str, Any]


def prepare(doc: str) -> Workload:
    """Read the options, say what the numbers depend on, and see to questions and base model."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1, help="processor threads")
    parser.add_argument("--results", type=Path, default=Path("results"))
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    study = load_study(STUDY)
    _make_missing(study, asked.results, asked.threads)
    print(doc.splitlines()[0])
    print(conditions())
    return Workload(
        next(run for run in study.runs.values() if (run.arm, run.seed) == (ARM, SEED)),
        base_path(study, asked.results),
        questions.load(question_file(study, "train", asked.results)),
    )


def conditions() -> str:
    """Threads, versions and load of the machine, on one line."""
    return (
        f"{torch.get_num_threads()} of {os.cpu_count()} threads, torch {torch.__version__}, "
        f"transformers {transformers.__version__}, load {os.getloadavg()[0]:.1f}"
    )


def _make_missing(study: Study, results: Path, threads: int) -> None:
    folder = study_folder(study, results)
    if not (folder / "base" / DONE).exists():
        make_base_model(study, results, threads)
    if not (folder / "questions" / DONE).exists():
        make_questions(study, results)  # after the base model, whose tokenizer it uses
    require_done(folder / "questions", questions_hash(study.any_run))
    require_done(folder / "base", section_hash(study.any_run.base))


def changed(settings: RunSettings, **sections: dict[str, Any]) -> RunSettings:
    """The settings with some keys of some sections changed, checked like a file's."""
    values = settings.model_dump()
    for section, keys in sections.items():
        values[section] |= keys
    return RunSettings.model_validate(values)


def train_steps(
    workload: Workload, steps: int, skip: int = 2, seed: int = SEED, **sections: dict[str, Any]
) -> list[StepTime]:
    """Train from the base model as a study does, log and checkpoints included.

    Returns the steps after the first `skip`, at least one, which warm up. A step's time ends when
    it is reported; one validation question keeps what happens before and after the steps short.
    """
    settings = changed(
        workload.settings,
        **{**sections, "training": {"steps": steps} | sections.get("training", {})},
    )
    settings = settings.model_copy(update={"seed": seed})
    done: list[tuple[float, dict[str, Any]]] = []
    with tempfile.TemporaryDirectory() as folder:
        train(
            settings,
            workload.base,
            workload.train,
            workload.train[:1],
            Path(folder),
            report=lambda row: done.append((time.perf_counter(), row)),
            heartbeat=lambda progress: None,
        )
    return [
        StepTime(at - before, row["sampled_tokens"], row)
        for (before, _), (at, row) in zip(done[skip - 1 :], done[skip:], strict=False)
    ]


@contextmanager
def wrapped(owner: Any, name: str, wrapper: Callable[..., Any]) -> Iterator[None]:
    """While this lasts, `owner.name` is called through `wrapper(original, *arguments)`."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*arguments: Any, **named: Any) -> Any:
        return wrapper(original, *arguments, **named)

    setattr(owner, name, call)
    try:
        yield
    finally:
        setattr(owner, name, original)


def seconds_of(action: Callable[[], object]) -> float:
    """Wall time of one call."""
    start = time.perf_counter()
    action()
    return time.perf_counter() - start
