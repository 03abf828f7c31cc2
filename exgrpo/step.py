"""One step of the paper's Algorithm 1, line by line.

On-policy Dr.GRPO and ExGRPO are the same step: with `experience.replay: none` no question is drawn
from the buffer and nothing is replayed.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from accelerate import Accelerator
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from exgrpo import step_records
from exgrpo.batch import Group, Row, fresh_questions, numpy_generator, torch_generator
from exgrpo.checkpoint import Progress
from exgrpo.experience import (
    Candidate,
    Draw,
    Event,
    Trajectory,
    bucket_weights,
    draw_questions,
    rank_candidates,
)
from exgrpo.grading import Grader
from exgrpo.objective import group_advantages
from exgrpo.policy import TokenScores, score_sequences, stop_ids
from exgrpo.questions import Question
from exgrpo.records import Recorder
from exgrpo.rollout import Sampling
from exgrpo.rollout.torch_engine import generate
from exgrpo.settings import RunSettings
from exgrpo.update import update_policy


@dataclass(frozen=True)
class Trainer:
    """The parts that a step uses; built once a start."""

    settings: RunSettings
    train_questions: dict[str, Question]
    validation: Sequence[Question]
    accelerator: Accelerator
    model: torch.nn.Module
    policy: PreTrainedModel  # the model without Accelerate's wrapper
    tokenizer: PreTrainedTokenizerBase
    optimiser: torch.optim.Optimizer
    grader: Grader
    recorder: Recorder


def train_step(trainer: Trainer, progress: Progress, record_seconds: float) -> dict[str, Any]:
    """One step of Algorithm 1. Changes the policy and `progress`; returns the row of `steps`."""
    settings, step = trainer.settings, progress.step
    clock = step_records.Clock()
    replay_on = progress.started and settings.experience.replay != "none"
    # ExGRPO takes the clip off every token once the start threshold has been passed.
    clip_on = settings.objective.clip_after_start or not progress.started

    draws = _draw_experience(trainer, progress) if replay_on else []
    groups, scores = _compose(trainer, progress, draws)
    clock.lap("select")
    rows = _roll_out(trainer, progress, groups, scores)
    clock.lap("rollout")
    rows = _grade(trainer, rows)
    rewards = _rewards(rows, len(groups), settings.rollout.group_size)
    clock.lap("grade")

    advantages = group_advantages(rewards)
    rows = [
        dataclasses.replace(row, advantage=advantages[row.group, row.slot].item()) for row in rows
    ]
    update = update_policy(
        rows,
        settings,
        settings.objective.clip if clip_on else None,
        trainer.model,
        trainer.optimiser,
        trainer.accelerator,
    )
    clock.lap("update")

    events = _learn_from(rows, groups, rewards, progress, replay_on)
    fresh = [row for row in rows if not row.replayed]
    progress.sampled_tokens += sum(len(row.behaviour_logprobs) for row in fresh)
    # Delayed start: batch pass@1 above the threshold once switches replay on for good.
    pass_at_1 = float(torch.tensor([bool(row.verdict.correct) for row in fresh]).float().mean())
    progress.started |= pass_at_1 > settings.experience.start
    progress.seconds += clock.total + record_seconds
    metrics = step_records.step_row(
        trainer.settings,
        progress,
        rows,
        groups,
        rewards,
        update,
        clock,
        replay_on,
        record_seconds,
        len(trainer.train_questions),
    )
    step_records.add_step(
        trainer.recorder, settings, step, rows, groups, rewards, update, events, metrics
    )
    return metrics


def _draw_experience(trainer: Trainer, progress: Progress) -> list[Draw]:
    """Line: draw min(|E|, floor(rho * B)) questions from the buffer, Gaussian over buckets."""
    settings = trainer.settings
    weights = bucket_weights(
        settings.rollout.group_size, settings.experience.mu, settings.experience.sigma
    )
    return draw_questions(
        progress.buffer,
        int(settings.experience.share * settings.batch.questions),
        weights,
        numpy_generator(settings.seed, "draw", progress.step),
    )


def _compose(
    trainer: Trainer, progress: Progress, draws: Sequence[Draw]
) -> tuple[list[Group], dict[str, TokenScores]]:
    """The batch: fresh questions first, then the drawn ones with their ranked candidates.

    Returns the groups and the token scores of each replayed trajectory by its id.
    """
    settings = trainer.settings
    fresh_count = settings.batch.questions - len(draws)
    order = list(trainer.train_questions.values())
    fresh = fresh_questions(order, progress.cursor, fresh_count, settings.seed)
    progress.cursor += fresh_count
    groups = [Group(question, trainer.tokenizer(question.text).input_ids) for question in fresh]
    stored = [progress.buffer.stored.get(draw.question, []) for draw in draws]
    if settings.experience.replay != "trajectory":
        stored = [[] for _ in draws]
    flat = [trajectory for kept in stored for trajectory in kept]
    scores = dict(
        zip(
            [trajectory.id for trajectory in flat],
            score_sequences(
                trainer.policy,
                [trajectory.sequence for trajectory in flat],
                settings.rollout.temperature,
                settings.batch.micro_batch_tokens,
            ),
            strict=True,
        )
    )
    rng = numpy_generator(settings.seed, "choose", progress.step)
    for draw, kept in zip(draws, stored, strict=True):
        question = trainer.train_questions[draw.question]
        candidates = [_candidate(trajectory, scores[trajectory.id]) for trajectory in kept]
        ranked = tuple(rank_candidates(candidates, settings.experience.choice, rng))
        groups.append(Group(question, trainer.tokenizer(question.text).input_ids, draw, ranked))
    return groups, scores


def _candidate(trajectory: Trajectory, scores: TokenScores) -> Candidate:
    return Candidate(
        trajectory,
        mean_entropy=scores.entropies.mean().item(),
        summed_entropy=scores.entropies.sum().item(),
        nll=-scores.logprobs.mean().item(),
    )


def _roll_out(
    trainer: Trainer,
    progress: Progress,
    groups: Sequence[Group],
    scores: dict[str, TokenScores],
) -> list[Row]:
    """K rows a group: the replayed trajectory in slot 0 where there is one, the rest fresh."""
    settings, step = trainer.settings, progress.step
    sampling = Sampling(
        settings.rollout.temperature,
        settings.rollout.max_new_tokens,
        stop_ids(trainer.policy, trainer.tokenizer),
    )
    size = settings.rollout.group_size
    rollouts = generate(
        trainer.policy,
        [group.prompt_ids for group in groups],
        [size - bool(group.candidates) for group in groups],
        sampling,
        torch_generator(settings.seed, "rollout", step),
    )
    rows = []
    for index, (group, sampled) in enumerate(zip(groups, rollouts, strict=True)):
        if group.candidates:
            replayed = group.candidates[0].trajectory
            rows.append(
                step_records.replayed_row(
                    settings.run, step, index, group, replayed, scores[replayed.id]
                )
            )
        rows += [
            step_records.fresh_row(settings.run, step, index, slot, group, rollout)
            for slot, rollout in enumerate(sampled, start=int(bool(group.candidates)))
        ]
    return rows


def _grade(trainer: Trainer, rows: Sequence[Row]) -> list[Row]:
    """Decode and grade every row, the replayed ones too."""
    responses = trainer.tokenizer.batch_decode(
        [row.sequence.response_ids for row in rows], skip_special_tokens=True
    )
    verdicts = trainer.grader.grade_all(
        [(row.question.gold, text) for row, text in zip(rows, responses, strict=True)]
    )
    return [
        dataclasses.replace(row, response=text, verdict=verdict)
        for row, text, verdict in zip(rows, responses, verdicts, strict=True)
    ]


def _rewards(rows: Sequence[Row], groups: int, size: int) -> torch.Tensor:
    """1 right, 0 wrong, NaN ungraded, [groups, K]."""
    rewards = torch.full((groups, size), torch.nan)
    for row in rows:
        if row.verdict.correct is not None:
            rewards[row.group, row.slot] = float(row.verdict.correct)
    return rewards


def _learn_from(
    rows: Sequence[Row],
    groups: Sequence[Group],
    rewards: torch.Tensor,
    progress: Progress,
    collect: bool,
) -> list[Event]:
    """Update the buffer with every group of the step; nothing is collected before the start."""
    events = [
        Event(
            group.question.id,
            "replayed",
            group.candidates[0].trajectory.id,
            group.draw.bucket if group.draw else None,
            progress.buffer.buckets.get(group.question.id),
        )
        for group in groups
        if group.candidates
    ]
    if not collect:
        return events
    for index, group in enumerate(groups):
        graded = ~torch.isnan(rewards[index])
        right = [
            Trajectory(
                row.id,
                group.question.id,
                group.prompt_ids,
                row.sequence.response_ids,
                row.behaviour_logprobs,
                progress.step,
            )
            for row in rows
            if row.group == index
            and row.verdict.correct
            and not row.replayed
            and row.finish == "stop"  # a cut-off success has no end to learn
        ]
        successes = int(rewards[index][graded].sum())
        events += progress.buffer.observe(group.question.id, successes, int(graded.sum()), right)
    return events
