"""The training loop: steps, checkpoints, validation; from the start or from where it was cut off.

What a step does is in `exgrpo.step`.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor
from transformers import PreTrainedModel

from exgrpo import checkpoint, step_records
from exgrpo.checkpoint import Progress
from exgrpo.context import RunContext
from exgrpo.determinism import deterministic
from exgrpo.errors import UserError
from exgrpo.evaluation import evaluate
from exgrpo.experience import ReplayBuffer
from exgrpo.grading import Grader
from exgrpo.hardware import CPU, Hardware
from exgrpo.outside import outside_trajectories
from exgrpo.policy import fingerprint, load_policy, save_policy, tokenizer_hash
from exgrpo.processes import ALONE, Processes
from exgrpo.prompts import prompts_hash
from exgrpo.questions import Question
from exgrpo.records import FROM_THE_START, Recorder, Unrecorded, require_logged
from exgrpo.rollout.engines import engine_of
from exgrpo.scorer import Scorer, shard
from exgrpo.seeds import derived_seed
from exgrpo.settings import RunSettings, content_hash
from exgrpo.step import train_step
from exgrpo.update import Learner, NonFiniteError
from exgrpo.weights import (
    copy_weights,
    fill_averages,
    fill_weights,
    full_averages,
    full_weights,
)

CHECKPOINTS = "checkpoints"


class StoppedError(UserError):
    """Training stopped by itself: going on would train on numbers that mean nothing."""


def train(
    settings: RunSettings,
    base_path: str,
    train_questions: Sequence[Question],
    validation: Sequence[Question],
    folder: Path,
    report: Callable[[dict[str, Any]], None],
    heartbeat: Callable[[Progress], None],
    start_path: str | None = None,
    pool_log: Path | None = None,
    stop: Callable[[], bool] = lambda: False,
    hardware: Hardware = CPU,
    processes: Processes = ALONE,
) -> Progress:
    """Train from the base model, or go on from the newest checkpoint in `folder`.

    Where several processes were launched together, each of them calls this; what follows is done
    by the first alone, and stop() is true when it is so in one of them.

    report gets the row of table `steps` after every step; heartbeat is called after each
    checkpoint. start_path: the model to start from where it is not the base model (continual
    training). pool_log: log of the run that `join.pool` names. Once stop() is true, the step at
    work is ended and saved, and no other begun: the progress returned is then short of all steps.
    Otherwise leaves the final model in `folder/final`, and with `keep_best` that of the best
    validation in `folder/best`. A run that has ended is left as it is.

    Raises UserError when a question has no prompt ids or the checkpoints are of another run, and
    StoppedError.
    """
    policy, tokenizer = load_policy(start_path or base_path, settings.training.dtype)
    prompts = prompts_hash([*train_questions, *validation])
    outside = outside_trajectories(settings, train_questions, tokenizer, pool_log)
    # What a checkpoint must agree in before it is gone on from.
    identity = {
        **settings.model_dump(mode="json"),
        "start model": fingerprint(policy),
        "tokenizer": tokenizer_hash(tokenizer),
        "prompts": prompts,
        "training questions": content_hash([asdict(each) for each in train_questions]),
        "validation questions": content_hash([asdict(each) for each in validation]),
        "outside answers": content_hash(
            {name: [each.token_ids.tolist() for each in kept] for name, kept in outside.items()}
        ),
    }
    progress = Progress(
        started=settings.experience.start == "at_once", buffer=ReplayBuffer(settings.buffer)
    )
    saved = checkpoint.load_latest(folder / CHECKPOINTS, processes=processes)
    resumed_from = FROM_THE_START
    if saved:
        checkpoint.require_same(folder / CHECKPOINTS, saved["identity"], identity)
        progress = Progress.from_state(settings.buffer, saved["progress"])
        resumed_from = progress.step
        processes.first_does(partial(require_logged, folder / "log", resumed_from))
        if progress.step == settings.training.steps and processes.first_does(
            (folder / "final").is_dir
        ):
            return progress
    start = start_path or base_path
    with ExitStack() as opened:
        opened.enter_context(deterministic(settings.training.deterministic))
        grader = opened.enter_context(Grader.of(settings.grading))
        learner = _learner(settings, policy, start, hardware, processes)
        if saved:
            _restore(learner, policy, saved)
        asked = [list(each.prompt_ids) for each in (*train_questions, *validation)]
        engine = opened.enter_context(
            engine_of(settings, hardware, learner.model, policy, start, processes, asked)
        )
        context = RunContext(
            settings,
            {question.id: question for question in train_questions},
            validation,
            learner,
            policy,
            tokenizer,
            outside,
            grader,
            Recorder(folder / "log", resumed_from) if processes.first else Unrecorded(),
            engine,
        )
        if not saved:
            context.recorder.add("vocabulary", step_records.vocabulary_rows(tokenizer))
            _validate(context, progress, folder)
            context.recorder.flush(0, 0)
        del saved  # its file can be given back
        _loop(context, progress, folder, identity, report, heartbeat, stop)
        if progress.step == settings.training.steps:
            _save_policy(context, folder / "final")
    return progress


def _learner(
    settings: RunSettings,
    policy: PreTrainedModel,
    path: str,
    hardware: Hardware,
    processes: Processes,
) -> Learner:
    """The policy with its optimiser, on the devices of all processes, and the reference."""
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    reference = None
    if settings.objective.kl_reference:
        reference, _ = load_policy(path, settings.training.dtype)
        reference.to(accelerator.device)
    scorer = Scorer(policy, hardware.activation_checkpointing)
    if hardware.sharded:
        shard(scorer, accelerator.device)
    model = scorer if hardware.sharded else accelerator.prepare(scorer)
    optimiser = accelerator.prepare(
        torch.optim.AdamW(
            policy.parameters(),
            lr=settings.optimiser.learning_rate,
            weight_decay=settings.optimiser.weight_decay,
        )
    )
    return Learner(model, optimiser, accelerator, reference, processes, hardware)


def _state(learner: Learner, policy: PreTrainedModel) -> dict[str, Any]:
    """The learner's part of a checkpoint: one form wherever the weights are. All call it."""

    def kept(values: Iterable[tuple[str, Tensor]]) -> dict[str, Tensor]:
        # Each process must see every value, for a sharded one is put together by all of them.
        first = learner.processes.first
        return {name: value.cpu() for name, value in values if first}

    return {
        "model": kept(full_weights(policy)),
        "reference": None if learner.reference is None else kept(full_weights(learner.reference)),
        "optimiser": kept(full_averages(policy, learner.optimiser)),
    }


def _restore(learner: Learner, policy: PreTrainedModel, saved: dict[str, Any]) -> None:
    fill_weights(policy, saved["model"])
    fill_averages(policy, learner.optimiser, saved["optimiser"])
    if learner.reference is not None:
        fill_weights(learner.reference, saved["reference"])


def _loop(
    context: RunContext,
    progress: Progress,
    folder: Path,
    identity: dict[str, Any],
    report: Callable[[dict[str, Any]], None],
    heartbeat: Callable[[Progress], None],
    stop: Callable[[], bool],
) -> None:
    training = context.settings.training
    flushed = progress.step
    checkpoint_seconds = 0.0
    processes = context.processes
    ended = processes.any(stop()) or progress.step == training.steps
    while not ended:
        progress.step += 1
        try:
            metrics = train_step(context, progress, checkpoint_seconds)
        except NonFiniteError as error:
            processes.first_does(  # to be looked at
                partial(context.recorder.flush, flushed + 1, progress.step)
            )
            raise _stopped(context.settings, progress.step, error) from error
        if processes.first:
            report(metrics)
        if progress.step == training.last_life:
            _reincarnate(context, progress)
        if (
            progress.step % context.settings.evaluation.every == 0
            or progress.step == training.steps
        ):
            _validate(context, progress, folder)
        ended = processes.any(stop()) or progress.step == training.steps
        checkpoint_seconds = 0.0
        if progress.step % training.checkpoint_every == 0 or ended:
            # The log first: a part without its checkpoint is overtaken by the next attempt.
            context.recorder.flush(flushed + 1, progress.step)
            flushed = progress.step
            began = time.perf_counter()
            state = {
                "identity": identity,
                **_state(context.learner, context.policy),
                "progress": progress.state(),
            }
            processes.first_does(
                partial(checkpoint.save, folder / CHECKPOINTS, progress.step, state)
            )
            del state  # at 8 B parameters it is 100 GB
            checkpoint_seconds = time.perf_counter() - began
            if processes.first:
                heartbeat(progress)


def _stopped(settings: RunSettings, step: int, error: NonFiniteError) -> StoppedError:
    return StoppedError(
        f"run {settings.run}, step {step}: {error}: training stops. The rows of this step are in "
        f"the log, its weights are not saved. Likely causes: optimiser.learning_rate too high "
        f"({settings.optimiser.learning_rate:g}); ratios that overflow (ratio_max and weight_max "
        f"of its trajectories); broken weights in the model that it started from. The same "
        f"settings come to the same: change them, which makes a new run."
    )


def _reincarnate(context: RunContext, progress: Progress) -> None:
    """ReMix: the policy is the new reference, the optimiser starts afresh, replay is over."""
    if context.learner.reference is not None:
        copy_weights(context.policy, context.learner.reference)
    context.learner.optimiser.state.clear()
    progress.reincarnated = True


def _validate(context: RunContext, progress: Progress, folder: Path) -> None:
    """Held-out accuracy on the validation questions, for the learning curve and the best model."""
    settings = context.settings
    context.engine.sync()
    rows = evaluate(
        context.sampler,
        context.validation,
        settings.evaluation.validation_samples,
        settings,
        derived_seed(settings.seed, "validation", progress.step),
        run=settings.run,
        step=progress.step,
        benchmark="validation",
    )
    context.engine.sleep()
    context.recorder.add("evaluations", rows)
    graded = [row["correct"] for row in rows if row["correct"] is not None]
    if not graded and context.processes.first:
        print(
            f"{settings.run}, step {progress.step}: none of the {len(rows)} answers to the "
            f"validation questions could be graded, so that this step is not compared with the "
            f"best. Likely causes: golds that cannot be read; grading workers that do not start.",
            flush=True,
        )
    accuracy = sum(graded) / len(graded) if graded else -math.inf
    if settings.training.keep_best and accuracy > progress.best:
        progress.best = accuracy
        _save_policy(context, folder / "best")


def _save_policy(context: RunContext, folder: Path) -> None:
    """The first process saves; the others bring their shards."""
    policy, processes = context.policy, context.processes
    weights = None
    if context.learner.hardware.sharded:
        weights = {name: value.cpu() for name, value in full_weights(policy) if processes.first}
    processes.first_does(partial(save_policy, policy, context.tokenizer, folder, weights))
