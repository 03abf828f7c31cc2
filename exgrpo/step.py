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
from exgrpo.batch import (
    Group,
    Outcome,
    Row,
    fresh_questions,
    numpy_generator,
    outcome,
    torch_generator,
)
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
class RunContext:
    """What every step of a run uses; built once a start."""

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


def train_step(context: RunContext, progress: Progress, record_seconds: float) -> dict[str, Any]:
    """One step of Algorithm 1. Changes the policy and `progress`; returns the row of `steps`."""
    settings, step = context.settings, progress.step
    clock = step_records.Clock()
    replay_on = progress.started and settings.experience.replay != "none"
    # ExGRPO takes the clip off every token once the start threshold has been passed.
    clip_on = settings.objective.clip_after_start or not progress.started

    draws = _draw_experience(context, progress) if replay_on else []
    groups, scores = _compose(context, progress, draws)
    clock.lap("select")
    rows = _roll_out(context, progress, groups, scores)
    clock.lap("rollout")
    rows = _grade(context, rows)
    rewards = _rewards(rows, len(groups), settings.rollout.group_size)
    outcomes = [outcome(of_group) for of_group in rewards]
    clock.lap("grade")

    advantages = group_advantages(rewards)
    rows = [
        dataclasses.replace(row, advantage=advantages[row.group, row.slot].item()) for row in rows
    ]
    update = update_policy(
        rows,
        settings,
        settings.objective.clip if clip_on else None,
        context.model,
        context.optimiser,
        context.accelerator,
    )
    clock.lap("update")

    events = _learn_from(settings, progress, rows, groups, outcomes, collect=replay_on)
    fresh = [row for row in rows if not row.replayed]
    progress.sampled_tokens += sum(len(row.behaviour_logprobs) for row in fresh)
    # Delayed start: batch pass@1 above the threshold once switches replay on for good.
    pass_at_1 = sum(row.verdict.correct is True for row in fresh) / len(fresh)
    progress.started |= pass_at_1 > (settings.experience.start or 0.0)
    progress.seconds += clock.total + record_seconds
    metrics = step_records.step_row(
        context.settings,
        progress,
        rows,
        groups,
        rewards,
        outcomes,
        update,
        clock,
        replay_on,
        record_seconds,
        len(context.train_questions),
    )
    step_records.add_step(
        context.recorder, settings, step, rows, groups, outcomes, update, events, metrics
    )
    return metrics


def _draw_experience(context: RunContext, progress: Progress) -> list[Draw]:
    """Algorithms 1 and 2: min(|E|, floor(rho * B)) questions from the buffer, by their buckets."""
    settings = context.settings
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
    context: RunContext, progress: Progress, draws: Sequence[Draw]
) -> tuple[list[Group], dict[str, TokenScores]]:
    """Algorithm 1's batch: fresh questions, then the drawn ones with their ranked candidates.

    Returns the groups and the token scores of each replayed trajectory by its id.
    """
    settings = context.settings
    fresh_count = settings.batch.questions - len(draws)
    order = list(context.train_questions.values())
    fresh = fresh_questions(order, progress.cursor, fresh_count, settings.seed)
    progress.cursor += fresh_count
    groups = [Group(question, context.tokenizer(question.text).input_ids) for question in fresh]
    stored = [progress.buffer.stored.get(draw.question, []) for draw in draws]
    if settings.experience.replay != "trajectory":
        stored = [[] for _ in draws]
    flat = [trajectory for kept in stored for trajectory in kept]
    scores = dict(
        zip(
            [trajectory.id for trajectory in flat],
            score_sequences(
                context.policy,
                [trajectory.sequence for trajectory in flat],
                settings.rollout.temperature,
                settings.batch.micro_batch_tokens,
            ),
            strict=True,
        )
    )
    rng = numpy_generator(settings.seed, "choose", progress.step)
    for draw, kept in zip(draws, stored, strict=True):
        question = context.train_questions[draw.question]
        candidates = [_candidate(trajectory, scores[trajectory.id]) for trajectory in kept]
        ranked = tuple(rank_candidates(candidates, settings.experience.choice, rng))
        groups.append(Group(question, context.tokenizer(question.text).input_ids, draw, ranked))
    return groups, scores


def _candidate(trajectory: Trajectory, scores: TokenScores) -> Candidate:
    return Candidate(
        trajectory,
        mean_entropy=scores.entropies.mean().item(),
        summed_entropy=scores.entropies.sum().item(),
        nll=-scores.logprobs.mean().item(),
    )


def _roll_out(
    context: RunContext,
    progress: Progress,
    groups: Sequence[Group],
    scores: dict[str, TokenScores],
) -> list[Row]:
    """Algorithm 1's rollouts: K rows a group, a replayed trajectory in slot 0, the rest fresh."""
    settings, step = context.settings, progress.step
    sampling = Sampling(
        settings.rollout.temperature,
        settings.rollout.max_new_tokens,
        stop_ids(context.policy, context.tokenizer),
    )
    size = settings.rollout.group_size
    rollouts = generate(
        context.policy,
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


def _grade(context: RunContext, rows: Sequence[Row]) -> list[Row]:
    """Decode and grade every row, the replayed ones too."""
    responses = context.tokenizer.batch_decode(
        [row.sequence.response_ids for row in rows], skip_special_tokens=True
    )
    verdicts = context.grader.grade_all(
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
    settings: RunSettings,
    progress: Progress,
    rows: Sequence[Row],
    groups: Sequence[Group],
    outcomes: Sequence[Outcome],
    collect: bool,
) -> list[Event]:
    """Algorithm 1's update of E and S with every group of the step, experiential ones too.

    Before the start nothing is collected, but solved questions retire, as in the released code.
    A group with an ungraded trajectory changes nothing: its k of K is not known.
    """
    if settings.experience.replay == "none":
        return []
    right: list[list[Trajectory]] = [[] for _ in groups]
    for row in rows:
        # A cut-off success has no end to learn.
        if row.verdict.correct and not row.replayed and row.finish == "stop":
            right[row.group].append(_stored(row, progress.step))
    events = []
    for group, result, successes in zip(groups, outcomes, right, strict=True):
        question = group.question.id
        if group.draw and group.candidates:
            source, bucket = group.candidates[0].trajectory.id, group.draw.bucket
            events.append(Event(question, "replayed", source, bucket, bucket))
        wholly_graded = result.size == settings.rollout.group_size
        if wholly_graded and (collect or result.solved):
            events += progress.buffer.observe(question, result.successes, result.size, successes)
    return events


def _stored(row: Row, step: int) -> Trajectory:
    """What the buffer keeps of a success: its token ids and the policy's log-probabilities now."""
    return Trajectory(
        row.id,
        row.question.id,
        row.sequence.prompt_ids,
        row.sequence.response_ids,
        row.behaviour_logprobs,
        step,
    )
