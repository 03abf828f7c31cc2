"""The training loop: steps, checkpoints, validation; from the start or from where it was cut off.

What a step does is in `exgrpo.step`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator

from exgrpo import checkpoint, step_records
from exgrpo.batch import torch_generator
from exgrpo.checkpoint import Progress
from exgrpo.errors import UserError
from exgrpo.evaluation import evaluate
from exgrpo.grading import Grader
from exgrpo.policy import fingerprint, load_policy, save_policy
from exgrpo.questions import Question
from exgrpo.records import FROM_THE_START, Recorder
from exgrpo.settings import RunSettings
from exgrpo.step import RunContext, train_step


def train(
    settings: RunSettings,
    base_path: str,
    train_questions: Sequence[Question],
    validation: Sequence[Question],
    folder: Path,
    report: Callable[[dict[str, Any]], None],
    heartbeat: Callable[[Progress, Recorder], None],
) -> tuple[Progress, Recorder]:
    """Train from the base model, or go on from the newest checkpoint in `folder`.

    report gets the row of table `steps` after every step; heartbeat is called after each
    checkpoint. Leaves the final model in `folder/final`.
    """
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    policy, tokenizer = load_policy(base_path)
    base = fingerprint(policy)
    saved = checkpoint.load_latest(folder / "checkpoints")
    if saved and saved["base"] != base:
        raise UserError(
            f"{folder / 'checkpoints'}: this run was started from another base model (fingerprint "
            f"{saved['base']}, now {base} at {base_path}). Remove {folder} to train it afresh."
        )
    model, optimiser = accelerator.prepare(
        policy,
        torch.optim.AdamW(
            policy.parameters(),
            lr=settings.optimiser.learning_rate,
            weight_decay=settings.optimiser.weight_decay,
        ),
    )
    progress = Progress(started=settings.experience.start is None)
    if saved:
        accelerator.unwrap_model(model).load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        progress = Progress.from_state(saved["progress"])
    recorder = Recorder(folder / "log", resumed_from=progress.step if saved else FROM_THE_START)
    with Grader(workers=1) as grader:
        context = RunContext(
            settings,
            {question.id: question for question in train_questions},
            validation,
            accelerator,
            model,
            accelerator.unwrap_model(model),
            tokenizer,
            optimiser,
            grader,
            recorder,
        )
        if not saved:
            recorder.add("vocabulary", step_records.vocabulary_rows(tokenizer))
            _validate(context, progress)
            recorder.flush(0, 0)
        _loop(context, progress, folder, base, report, heartbeat)
    save_policy(context.policy, tokenizer, folder / "final")
    return progress, recorder


def _loop(
    context: RunContext,
    progress: Progress,
    folder: Path,
    base: str,
    report: Callable[[dict[str, Any]], None],
    heartbeat: Callable[[Progress, Recorder], None],
) -> None:
    training = context.settings.training
    flushed = progress.step
    record_seconds = 0.0
    while progress.step < training.steps:
        progress.step += 1
        metrics = train_step(context, progress, record_seconds)
        report(metrics)
        if (
            progress.step % context.settings.evaluation.every == 0
            or progress.step == training.steps
        ):
            _validate(context, progress)
        began = time.perf_counter()
        if progress.step % training.checkpoint_every == 0 or progress.step == training.steps:
            # The log first: a part without its checkpoint is overtaken by the next attempt.
            context.recorder.flush(flushed + 1, progress.step)
            flushed = progress.step
            checkpoint.save(
                folder / "checkpoints",
                progress.step,
                {
                    "base": base,
                    "model": context.policy.state_dict(),
                    "optimiser": context.optimiser.state_dict(),
                    "progress": progress.state(),
                },
            )
            heartbeat(progress, context.recorder)
        record_seconds = time.perf_counter() - began


def _validate(context: RunContext, progress: Progress) -> None:
    """Held-out accuracy on the validation questions, for the learning curve."""
    settings = context.settings
    context.recorder.add(
        "evaluations",
        evaluate(
            context.policy,
            context.tokenizer,
            context.validation,
            settings.evaluation.validation_samples,
            settings.evaluation,
            context.grader,
            torch_generator(settings.seed, "validation", progress.step),
            run=settings.run,
            step=progress.step,
            benchmark="validation",
        ),
    )
