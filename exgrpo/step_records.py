"""The rows that a step leaves in the log, and the batch rows that they are made from."""

import hashlib
import math
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from transformers import PreTrainedTokenizerBase

from exgrpo.batch import Group, Outcome, Row
from exgrpo.checkpoint import Progress
from exgrpo.experience import Event, Trajectory
from exgrpo.grading import Verdict
from exgrpo.markers import mark
from exgrpo.policy import TokenScores, TokenSequence, tokenizer_hash
from exgrpo.records import Recorder
from exgrpo.rollout import Rollout
from exgrpo.settings import RunSettings
from exgrpo.update import RowUpdate, UpdateReport

UNGRADED = Verdict(correct=None, extracted=None, format_ok=False, reason="not graded yet")


class Clock:
    """Seconds by phase of one step."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.phases: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase] = now - self._last
        self._last = now

    @property
    def total(self) -> float:
        return sum(self.phases.values())


def fresh_row(run: str, step: int, group: int, slot: int, of: Group, rollout: Rollout) -> Row:
    """The batch row of a rollout sampled now."""
    return Row(
        id=f"{run}:{step}:{group}:{slot}",
        group=group,
        slot=slot,
        question=of.question,
        sequence=TokenSequence(of.prompt_ids, rollout.token_ids),
        behaviour_logprobs=rollout.logprobs,
        nll=rollout.nll,
        entropies=rollout.entropies,
        finish=rollout.finish,
        response="",
        source=None,
        birth_step=step,
        verdict=UNGRADED,
    )


def replayed_row(
    run: str, step: int, group: int, of: Group, trajectory: Trajectory, scores: TokenScores
) -> Row:
    """The batch row of a stored trajectory: its own token ids and log-probabilities, slot 0."""
    return Row(
        id=f"{run}:{step}:{group}:0",
        group=group,
        slot=0,
        question=of.question,
        sequence=trajectory.sequence,
        behaviour_logprobs=trajectory.logprobs,
        nll=-scores.logprobs.mean().item(),
        entropies=scores.entropies.tolist(),
        finish="stop",
        response="",
        source=trajectory.id,
        birth_step=trajectory.birth_step,
        verdict=UNGRADED,
    )


def add_step(
    recorder: Recorder,
    settings: RunSettings,
    step: int,
    rows: Sequence[Row],
    groups: Sequence[Group],
    outcomes: Sequence[Outcome],
    update: UpdateReport,
    events: Iterable[Event],
    metrics: dict[str, Any],
) -> None:
    """Hand all rows of a step to the recorder."""
    key = {"run": settings.run, "step": step}
    recorder.add("steps", [metrics])
    recorder.add(
        "trajectories",
        (
            {**key, **_trajectory(row, groups[row.group], outcomes[row.group], seen)}
            for row, seen in zip(rows, update.rows, strict=True)
        ),
    )
    share = settings.log.token_floats_share
    recorder.add(
        "tokens",
        ({**key, **_tokens(row, seen, share)} for row, seen in zip(rows, update.rows, strict=True)),
    )
    recorder.add("candidates", ({**key, **row} for row in _candidates(groups)))
    recorder.add("experience", ({**key, **vars(event)} for event in events))


def _trajectory(row: Row, group: Group, result: Outcome, seen: RowUpdate) -> dict[str, Any]:
    markers = mark(row.question.source, row.question.text, row.response)
    length = len(row.entropies)
    return {
        "trajectory": row.id,
        "group": row.group,
        "slot": row.slot,
        "question": row.question.id,
        "level": row.question.level,
        "experiential": group.draw is not None,
        "replayed": row.replayed,
        "source": row.source,
        "birth_step": row.birth_step,
        "response": row.response,
        "length": length,
        "finish": row.finish,
        "extracted": row.verdict.extracted,
        "correct": row.verdict.correct,
        "format_ok": row.verdict.format_ok,
        "group_successes": result.successes,
        "group_size": result.size,
        "bucket_drawn": group.draw.bucket if group.draw else None,
        "bucket": result.bucket,
        "difficulty": result.difficulty,
        "mean_entropy": sum(row.entropies) / length,
        "summed_entropy": sum(row.entropies),
        "nll": row.nll,
        "behaviour_nll": -sum(row.behaviour_logprobs) / length,
        "advantage": row.advantage,
        "ratio_mean": seen.ratio_mean,
        "ratio_min": seen.ratio_min,
        "ratio_max": seen.ratio_max,
        "weight_mean": seen.weight_mean,
        "clipped_share": seen.clipped_share,
        **vars(markers),
    }


def _floats_logged(row: Row, share: float) -> bool:
    """Whether a trajectory keeps its float token columns: decided by its id, the same always."""
    return int(hashlib.sha256(row.id.encode()).hexdigest()[:8], 16) < share * 2**32


def _tokens(row: Row, seen: RowUpdate, share: float) -> dict[str, Any]:
    kept = _floats_logged(row, share)
    return {
        "trajectory": row.id,
        "group": row.group,
        "slot": row.slot,
        "token_ids": row.sequence.response_ids,
        "behaviour_logprobs": row.behaviour_logprobs,
        "logprobs": seen.logprobs if kept else None,
        "entropies": row.entropies if kept else None,
    }


def _candidates(groups: Sequence[Group]) -> Iterable[dict[str, Any]]:
    for index, group in enumerate(groups):
        for rank, candidate in enumerate(group.candidates):
            yield {
                "group": index,
                "question": group.question.id,
                "source": candidate.trajectory.id,
                "birth_step": candidate.trajectory.birth_step,
                "length": len(candidate.trajectory.token_ids),
                "mean_entropy": candidate.mean_entropy,
                "summed_entropy": candidate.summed_entropy,
                "nll": candidate.nll,
                "rank": rank,
                "chosen": rank == 0,
            }


def step_row(
    settings: RunSettings,
    progress: Progress,
    rows: Sequence[Row],
    groups: Sequence[Group],
    rewards: torch.Tensor,
    outcomes: Sequence[Outcome],
    update: UpdateReport,
    clock: Clock,
    replay_on: bool,
    record_seconds: float,
    question_count: int,
) -> dict[str, Any]:
    """The row of table `steps`."""
    paired = list(zip(rows, update.rows, strict=True))
    fresh = [(row, seen) for row, seen in paired if not row.replayed]
    experiential = torch.tensor([group.draw is not None for group in groups])
    sampled = torch.tensor(
        [[not _is_replay(g, slot) for slot in range(rewards.shape[1])] for g in groups]
    )
    sampled_tokens = sum(len(row.entropies) for row, _ in fresh)
    return {
        "run": settings.run,
        "step": progress.step,
        "replay_on": replay_on,
        "reward": _mean(rewards[sampled]),
        "fresh_reward": _mean(rewards[~experiential]),
        "experiential_reward": _mean(rewards[experiential][sampled[experiential]]),
        "groups": len(groups),
        "experiential_groups": int(experiential.sum()),
        "signal_groups": sum(result.bucket is not None for result in outcomes),
        "solved_groups": sum(result.solved for result in outcomes),
        "failed_groups": sum(result.failed for result in outcomes),
        "ungraded": int(rewards.isnan().sum()),
        "entropy": sum(sum(row.entropies) for row, _ in fresh) / sampled_tokens,
        "length": sampled_tokens / len(fresh),
        "truncated_share": sum(row.finish == "length" for row, _ in fresh) / len(fresh),
        "loss": update.loss,
        "grad_norm": update.grad_norm,
        "skipped_updates": update.skipped,
        "ratio_mean_fresh": _token_mean(fresh, "ratio_mean"),
        "ratio_mean_replayed": _token_mean([p for p in paired if p[0].replayed], "ratio_mean"),
        "clipped_share": _token_mean(paired, "clipped_share"),
        "buffer_questions": len(progress.buffer.buckets),
        "buffer_trajectories": sum(map(len, progress.buffer.stored.values())),
        "bucket_sizes": progress.buffer.bucket_sizes(settings.rollout.group_size),
        "retired_questions": len(progress.buffer.retired),
        "distinct_questions": min(progress.cursor, question_count),
        "sampled_tokens": sampled_tokens,
        "trained_tokens": sum(len(row.entropies) for row in rows),
        "total_sampled_tokens": progress.sampled_tokens,
        "token_floats_logged": sum(
            _floats_logged(row, settings.log.token_floats_share) for row in rows
        ),
        **{f"{phase}_seconds": seconds for phase, seconds in clock.phases.items()},
        "record_seconds": record_seconds,
        "seconds": clock.total,
        "run_seconds": progress.seconds,
    }


def vocabulary_rows(tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
    """Every token of the tokenizer, as text."""
    name = tokenizer_hash(tokenizer)
    texts = tokenizer.batch_decode([[index] for index in range(len(tokenizer))])
    return [{"tokenizer": name, "token_id": i, "text": text} for i, text in enumerate(texts)]


def _is_replay(group: Group, slot: int) -> bool:
    return slot == 0 and bool(group.candidates)


def _mean(values: torch.Tensor) -> float | None:
    mean = values.nanmean().item() if values.numel() else math.nan
    return None if math.isnan(mean) else mean


def _token_mean(pairs: Sequence[tuple[Row, RowUpdate]], column: str) -> float | None:
    tokens = sum(len(row.entropies) for row, _ in pairs)
    if not tokens:
        return None
    return sum(len(row.entropies) * getattr(seen, column) for row, seen in pairs) / tokens
