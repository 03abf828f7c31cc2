"""The training loop: steps, checkpoints, validation; from the start or from where it was cut off.

What a step does is in `exgrpo.step`.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from accelerate import Accelerator
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
from exgrpo.processes import processes_now
from exgrpo.prompts import prompts_hash
from exgrpo.questions import Question
from exgrpo.records import FROM_THE_START, Recorder, require_logged
from exgrpo.rollout.engines import engine_of
from exgrpo.scorer import Scorer
from exgrpo.seeds import derived_seed
from exgrpo.settings import RunSettings, content_hash
from exgrpo.step import train_step
from exgrpo.update import Learner, NonFiniteError

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
) -> Progress:
    """Train from the base model, or go on from the newest checkpoint in `folder`.

    Where several processes were launched together, each of them calls this.

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
    saved = checkpoint.load_latest(folder / CHECKPOINTS)
    if saved:
        checkpoint.require_same(folder / CHECKPOINTS, saved["identity"], identity)
        progress = Progress.from_state(settings.buffer, saved["progress"])
        require_logged(folder / "log", progress.step)
        if progress.step == settings.training.steps and (folder / "final").is_dir():
            return progress
    start = start_path or base_path
    with ExitStack() as opened:
        opened.enter_context(deterministic(settings.training.deterministic))
        grader = opened.enter_context(Grader.of(settings.grading))
        learner = _learner(settings, policy, start, saved, hardware)
        whole = learner.accelerator.unwrap_model(learner.model).policy
        engine = opened.enter_context(
            engine_of(settings, hardware, learner.model, whole, start, learner.processes)
        )
        context = RunContext(
            settings,
            {question.id: question for question in train_questions},
            validation,
            learner,
            whole,
            tokenizer,
            outside,
            grader,
            Recorder(folder / "log", resumed_from=progress.step if saved else FROM_THE_START),
            engine,
        )
        if not saved:
            context.recorder.add("vocabulary", step_records.vocabulary_rows(tokenizer))
            _validate(context, progress, folder)
            context.recorder.flush(0, 0)
        _loop(context, progress, folder, identity, report, heartbeat, stop)
    if progress.step == settings.training.steps:
        save_policy(context.policy, tokenizer, folder / "final")
    return progress


def _learner(
    settings: RunSettings,
    policy: PreTrainedModel,
    path: str,
    saved: dict[str, Any] | None,
    hardware: Hardware,
) -> Learner:
    """The policy with its optimiser, and the reference of the KL; as they were saved, if so."""
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    reference = None
    if settings.objective.kl_reference:
        reference, _ = load_policy(path, settings.training.dtype)
        reference.to(accelerator.device)
    model, optimiser = accelerator.prepare(
        Scorer(policy),
        torch.optim.AdamW(
            policy.parameters(),
            lr=settings.optimiser.learning_rate,
            weight_decay=settings.optimiser.weight_decay,
        ),
    )
    if saved:
        accelerator.unwrap_model(model).policy.load_state_dict(saved["model"])
        optimiser.load_state_dict(saved["optimiser"])
        if reference is not None:
            reference.load_state_dict(saved["reference"])
    return Learner(model, optimiser, accelerator, reference, processes_now(), hardware)


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
    ended = stop() or progress.step == training.steps
    while not ended:
        progress.step += 1
        try:
            metrics = train_step(context, progress, checkpoint_seconds)
        except NonFiniteError as error:
            context.recorder.flush(flushed + 1, progress.step)  # to be looked at
            raise _stopped(context.settings, progress.step, error) from error
        report(metrics)
        if progress.step == training.last_life:
            _reincarnate(context, progress)
        if (
            progress.step % context.settings.evaluation.every == 0
            or progress.step == training.steps
        ):
            _validate(context, progress, folder)
        ended = stop() or progress.step == training.steps
        checkpoint_seconds = 0.0
        if progress.step % training.checkpoint_every == 0 or ended:
            # The log first: a part without its checkpoint is overtaken by the next attempt.
            context.recorder.flush(flushed + 1, progress.step)
            flushed = progress.step
            began = time.perf_counter()
            reference = context.learner.reference
            checkpoint.save(
                folder / CHECKPOINTS,
                progress.step,
                {
                    "identity": identity,
                    "model": context.policy.state_dict(),
                    "reference": None if reference is None else reference.state_dict(),
                    "optimiser": context.learner.optimiser.state_dict(),
                    "progress": progress.state(),
                },
            )
            checkpoint_seconds = time.perf_counter() - began
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
        context.learner.reference.load_state_dict(context.policy.state_dict())
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
    if not graded:
        print(
            f"{settings.run}, step {progress.step}: none of the {len(rows)} answers to the "
            f"validation questions could be graded, so that this step is not compared with the "
            f"best. Likely causes: golds that cannot be read; grading workers that do not start.",
            flush=True,
        )
        return
    accuracy = sum(graded) / len(graded)
    if settings.training.keep_best and accuracy > progress.best:
        progress.best = accuracy
        save_policy(context.policy, context.tokenizer, folder / "best")
