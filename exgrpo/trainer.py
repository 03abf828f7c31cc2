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
from exgrpo.checkpoint import Progress
from exgrpo.errors import UserError
from exgrpo.evaluation import evaluate
from exgrpo.experience import ReplayBuffer
from exgrpo.grading import Grader
from exgrpo.outside import outside_trajectories
from exgrpo.policy import fingerprint, load_policy, save_policy
from exgrpo.questions import Question
from exgrpo.records import FROM_THE_START, Recorder
from exgrpo.seeds import torch_generator
from exgrpo.settings import RunSettings
from exgrpo.step import RunContext, train_step
from exgrpo.update import Learner


def train(
    settings: RunSettings,
    base_path: str,
    train_questions: Sequence[Question],
    validation: Sequence[Question],
    folder: Path,
    report: Callable[[dict[str, Any]], None],
    heartbeat: Callable[[Progress, Recorder], None],
    start_path: str | None = None,
    pool_log: Path | None = None,
) -> tuple[Progress, Recorder]:
    """Train from the base model, or go on from the newest checkpoint in `folder`.

    report gets the row of table `steps` after every step; heartbeat is called after each
    checkpoint. start_path: the model to start from where it is not the base model (continual
    training). pool_log: log of the run that `join.pool` names. Leaves the final model in
    `folder/final`, and with `keep_best` that of the best validation in `folder/best`.
    """
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    policy, tokenizer = load_policy(start_path or base_path, settings.training.dtype)
    start = fingerprint(policy)
    saved = checkpoint.load_latest(folder / "checkpoints")
    if saved and saved["start"] != start:
        raise UserError(
            f"{folder / 'checkpoints'}: this run was started from another model (fingerprint "
            f"{saved['start']}, now {start} at {start_path or base_path}). Remove {folder} to "
            f"train it afresh."
        )
    reference = None
    if settings.objective.kl_reference:
        reference, _ = load_policy(start_path or base_path, settings.training.dtype)
        reference.to(accelerator.device)
    model, optimiser = accelerator.prepare(
        policy,
        torch.optim.AdamW(
            policy.parameters(),
            lr=settings.optimiser.learning_rate,
            weight_decay=settings.optimiser.weight_decay,
        ),
    )
    progress = Progress(
        started=settings.experience.start == "at_once", buffer=ReplayBuffer(settings.buffer)
    )
    if saved:
        accelerator.unwrap_model(model).load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        progress = Progress.from_state(settings.buffer, saved["progress"])
        if reference is not None:
            reference.load_state_dict(saved["reference"])
    recorder = Recorder(folder / "log", resumed_from=progress.step if saved else FROM_THE_START)
    prompts = {each.id: tokenizer(each.text).input_ids for each in train_questions}
    with Grader(workers=1) as grader:
        context = RunContext(
            settings,
            {question.id: question for question in train_questions},
            prompts,
            validation,
            Learner(model, optimiser, accelerator, reference),
            accelerator.unwrap_model(model),
            tokenizer,
            outside_trajectories(settings, train_questions, prompts, tokenizer, pool_log),
            grader,
            recorder,
        )
        if not saved:
            recorder.add("vocabulary", step_records.vocabulary_rows(tokenizer))
            _validate(context, progress, folder)
            recorder.flush(0, 0)
        _loop(context, progress, folder, start, report, heartbeat)
    save_policy(context.policy, tokenizer, folder / "final")
    return progress, recorder


def _loop(
    context: RunContext,
    progress: Progress,
    folder: Path,
    start: str,
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
        if progress.step == training.last_life:
            _reincarnate(context, progress)
        if (
            progress.step % context.settings.evaluation.every == 0
            or progress.step == training.steps
        ):
            _validate(context, progress, folder)
        began = time.perf_counter()
        if progress.step % training.checkpoint_every == 0 or progress.step == training.steps:
            # The log first: a part without its checkpoint is overtaken by the next attempt.
            context.recorder.flush(flushed + 1, progress.step)
            flushed = progress.step
            reference = context.learner.reference
            checkpoint.save(
                folder / "checkpoints",
                progress.step,
                {
                    "start": start,
                    "model": context.policy.state_dict(),
                    "reference": None if reference is None else reference.state_dict(),
                    "optimiser": context.learner.optimiser.state_dict(),
                    "progress": progress.state(),
                },
            )
            heartbeat(progress, context.recorder)
        record_seconds = time.perf_counter() - began


def _reincarnate(context: RunContext, progress: Progress) -> None:
    """ReMix: the policy is the new reference, the optimiser starts afresh, replay is over."""
    if context.learner.reference is not None:
        context.learner.reference.load_state_dict(context.policy.state_dict())
    context.learner.optimiser.state.clear()
    progress.reincarnated = True


def _validate(context: RunContext, progress: Progress, folder: Path) -> None:
    """Held-out accuracy on the validation questions, for the learning curve and the best model."""
    settings = context.settings
    rows = evaluate(
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
    )
    context.recorder.add("evaluations", rows)
    accuracy = sum(row["correct"] is True for row in rows) / len(rows)
    if settings.training.keep_best and accuracy > progress.best:
        progress.best = accuracy
        save_policy(context.policy, context.tokenizer, folder / "best")
