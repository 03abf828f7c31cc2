"""The rows that a step leaves in the log."""

import hashlib
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from transformers import PreTrainedTokenizerBase

from exgrpo.batch import Group, Outcome, Row
from exgrpo.checkpoint import Progress
from exgrpo.experience import Event
from exgrpo.markers import mark
from exgrpo.policy import tokenizer_hash
from exgrpo.records import Recorder, Unrecorded
from exgrpo.selection import METRICS, Candidate
from exgrpo.settings import RunSettings
from exgrpo.update import RowUpdate, UpdateReport


class Clock:
    """Seconds by phase of one step."""

    def __init__(self) -> None:
        self._last = time.perf_counter()
        self.phases: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self.phases[phase] = self.phases.get(phase, 0.0) + now - self._last
        self._last = now

    @property
    def total(self) -> float:
        return sum(self.phases.values())


@dataclass(frozen=True)
class StepFacts:
    """What a step was, for its records. rewards: [groups, places], NaN where none is trained on."""

    rows: Sequence[Row]
    groups: Sequence[Group]
    outcomes: Sequence[Outcome]
    rewards: torch.Tensor
    update: UpdateReport
    replay_on: bool


def add_step(
    recorder: Recorder | Unrecorded,
    settings: RunSettings,
    step: int,
    facts: StepFacts,
    events: Iterable[Event],
    metrics: dict[str, Any],
) -> None:
    """Hand all rows of a step to the recorder."""
    key = {"run": settings.run, "step": step}
    seen = facts.update.rows
    share = settings.log.token_floats_share
    recorder.add("steps", [metrics])
    recorder.add("trajectories", ({**key, **_trajectory(row, facts)} for row in facts.rows))
    recorder.add("tokens", ({**key, **_tokens(row, seen.get(row.id), share)} for row in facts.rows))
    recorder.add("candidates", ({**key, **row} for row in _candidates(facts.groups)))
    recorder.add("experience", ({**key, **vars(event)} for event in events))


def _trajectory(row: Row, facts: StepFacts) -> dict[str, Any]:
    group, result = facts.groups[row.group], facts.outcomes[row.group]
    seen = facts.update.rows.get(row.id)
    markers = mark(row.question.source, row.question.text, row.response)
    length, entropy = len(row.entropies), _sum(row.entropies)
    return {
        "trajectory": row.id,
        "group": row.group,
        "slot": row.slot,
        "question": row.question.id,
        "level": row.question.level,
        "experiential": group.draw is not None,
        "replayed": row.replayed,
        "trained": row.trained,
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
        "mean_entropy": entropy / length,
        "summed_entropy": entropy,
        "nll": -_sum(row.previous_logprobs) / length,
        "behaviour_nll": -_sum(row.behaviour_logprobs) / length,
        "advantage": row.advantage,
        **{name: getattr(seen, name) if seen else None for name in _UPDATE_COLUMNS},
        **vars(markers),
    }


_UPDATE_COLUMNS = [field.name for field in fields(RowUpdate) if field.name != "logprobs"]


def _floats_logged(row: Row, share: float) -> bool:
    """Whether a trajectory keeps its float token columns: decided by its id, the same always."""
    return share == 1 or int(hashlib.sha256(row.id.encode()).hexdigest()[:8], 16) < share * 2**32


def _tokens(row: Row, seen: RowUpdate | None, share: float) -> dict[str, Any]:
    kept = _floats_logged(row, share)
    return {
        "trajectory": row.id,
        "group": row.group,
        "slot": row.slot,
        "token_ids": row.sequence.response_ids,
        "behaviour_logprobs": row.behaviour_logprobs,
        "logprobs": seen.logprobs if kept and seen else None,
        "entropies": row.entropies if kept else None,
    }


def _candidates(groups: Sequence[Group]) -> Iterable[dict[str, Any]]:
    for index, group in enumerate(groups):
        ranks = {metric: _ranks(group.candidates, metric) for metric in METRICS}
        for rank, candidate in enumerate(group.candidates):
            yield {
                "group": index,
                "question": group.question.id,
                "source": candidate.trajectory.id,
                "birth_step": candidate.trajectory.birth_step,
                "correct": candidate.trajectory.correct,
                "rank": rank,
                "chosen": rank < group.replays,
                **{metric: getattr(candidate, metric) for metric in METRICS},
                **{f"{metric}_rank": ranks[metric][rank] for metric in METRICS},
            }


def _ranks(candidates: Sequence[Candidate], metric: str) -> list[int]:
    """The place of each candidate by a metric, 0 the lowest; ties go to the older one."""

    def order(index: int) -> tuple[float, int]:
        candidate = candidates[index]
        return getattr(candidate, metric), candidate.trajectory.birth_step

    by_metric = sorted(range(len(candidates)), key=order)
    ranks = [0] * len(candidates)
    for place, index in enumerate(by_metric):
        ranks[index] = place
    return ranks


def step_row(
    settings: RunSettings,
    progress: Progress,
    facts: StepFacts,
    clock: Clock,
) -> dict[str, Any]:
    """The row of table `steps`."""
    rows, groups, results, update = facts.rows, facts.groups, facts.outcomes, facts.update
    sampled = [row for row in rows if not row.replayed]
    drawn = [row for row in sampled if groups[row.group].draw]
    sampled_tokens = sum(len(row.entropies) for row in sampled)
    trained = [row for row in rows if row.trained]
    replayed = [row for row in trained if row.replayed]
    fresh = [row for row in trained if not row.replayed]
    unequal = [_unequal(rewards) for rewards in facts.rewards]
    buffer = progress.buffer
    return {
        "run": settings.run,
        "step": progress.step,
        "replay_on": facts.replay_on,
        "reward": _mean(row.reward for row in sampled),
        "fresh_reward": _mean(row.reward for row in sampled if not groups[row.group].draw),
        "experiential_reward": _mean(row.reward for row in drawn),
        "groups": len(groups),
        "experiential_groups": sum(group.draw is not None for group in groups),
        "replay_groups": sum(group.replays > 0 for group in groups),
        "signal_groups": sum(unequal),
        "updated_groups": len({row.group for row in trained if row.advantage}),
        "solved_groups": sum(result.solved for result in results),
        "failed_groups": sum(result.failed for result in results),
        "ungraded": sum(math.isnan(row.reward) for row in rows),
        "unanswered": sum(
            not row.verdict.format_ok for row in sampled if row.verdict.correct is not None
        ),
        "entropy": sum(_sum(row.entropies) for row in sampled) / sampled_tokens,
        "length": sampled_tokens / len(sampled),
        "truncated_share": sum(row.finish == "length" for row in sampled) / len(sampled),
        "loss": float(np.mean(update.losses)) if update.losses else None,
        "grad_norm": _mean(norms.total for norms in update.norms),
        "grad_norm_fresh": _mean(norms.fresh for norms in update.norms),
        "grad_norm_replayed": _mean(norms.replayed for norms in update.norms),
        "skipped_updates": update.skipped,
        "ratio_mean_fresh": _token_mean(fresh, update, "ratio_mean"),
        "ratio_mean_replayed": _token_mean(replayed, update, "ratio_mean"),
        "weight_mean_replayed": _token_mean(replayed, update, "weight_mean"),
        "ratio_ess_replayed": _token_mean(replayed, update, "ratio_ess"),
        "clipped_share": _token_mean(trained, update, "clipped_share"),
        **_sampler_gap(sampled, settings),
        "buffer_questions": len(buffer.buckets),
        "buffer_trajectories": len(buffer.born),
        "buffer_bytes": buffer.bytes,
        "bucket_sizes": buffer.bucket_sizes(settings.rollout.group_size),
        "retired_questions": len(buffer.retired),
        "distinct_questions": len(progress.stream.asked),
        "sampled_tokens": sampled_tokens,
        "trained_tokens": sum(len(row.entropies) for row in trained),
        "total_sampled_tokens": progress.sampled_tokens,
        "token_floats_logged": sum(
            _floats_logged(row, settings.log.token_floats_share) for row in rows
        ),
        **{f"{phase}_seconds": seconds for phase, seconds in clock.phases.items()},
        "seconds": clock.total,
        "run_seconds": progress.seconds,
    }


def _sampler_gap(sampled: Sequence[Row], settings: RunSettings) -> dict[str, float]:
    """How far the trainer's log-probabilities of the fresh tokens are from the sampler's."""
    previous, behaviour = (
        np.concatenate([getattr(row, name) for row in sampled]).astype(np.float64)
        for name in ("previous_logprobs", "behaviour_logprobs")
    )
    gap = previous - behaviour
    ratio = np.exp(gap)
    return {
        "sampler_gap_mean": float(np.abs(gap).mean()),
        "sampler_gap_max": float(np.abs(gap).max()),
        "sampler_ratio_mean": float(ratio.mean()),
        "sampler_capped_share": float((ratio > settings.objective.sampler_cap).mean()),
    }


def vocabulary_rows(tokenizer: PreTrainedTokenizerBase) -> list[dict[str, Any]]:
    """Every token of the tokenizer, as text."""
    name = tokenizer_hash(tokenizer)
    texts = tokenizer.batch_decode([[index] for index in range(len(tokenizer))])
    return [{"tokenizer": name, "token_id": i, "text": text} for i, text in enumerate(texts)]


def _unequal(rewards: torch.Tensor) -> bool:
    """Whether a group's rewards differ, so that it has something to learn from."""
    graded = rewards[~rewards.isnan()]
    return bool(graded.numel()) and bool((graded != graded[0]).any())


def _mean(values: Iterable[float]) -> float | None:
    """Mean of what is known; None where nothing is."""
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else None


def _sum(values: np.ndarray) -> float:
    """In float64, whatever the precision of the policy."""
    return float(values.sum(dtype=np.float64))


def _token_mean(rows: Sequence[Row], update: UpdateReport, column: str) -> float | None:
    """Mean over the tokens of those rows that have a gradient; None where none has."""
    learning = [row for row in rows if row.id in update.rows]
    tokens = sum(len(row.entropies) for row in learning)
    if not tokens:
        return None
    total = sum(len(row.entropies) * getattr(update.rows[row.id], column) for row in learning)
    return float(total / tokens)
