"""A watched run gone through again with the slow reference: from its log, and its weights."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from reference import (
    Array,
    Logged,
    Part,
    clip_scale,
    group_advantages,
    masked,
    sequence_part,
    token_share,
)
from transformers import PreTrainedModel
from watched import Gradient, WatchedRun

from exgrpo import questions
from exgrpo.policy import load_policy
from exgrpo.settings import RunSettings

Row = dict[str, Any]


@dataclass(frozen=True)
class SlowUpdate:
    """An update by the reference, beside the gradient that the optimiser was given.

    size: the sum of the absolute values of what the loss sums. fresh, replayed: the gradients of
    those tokens alone; clipped: of all of them, after gradient clipping. parts: by trajectory.
    """

    step: int
    loss: float
    size: float
    fresh: Gradient
    replayed: Gradient
    clipped: Gradient
    given: Gradient
    rows: list[Row]
    parts: dict[str, Part]


def slow_updates(run: WatchedRun) -> Iterator[SlowUpdate]:
    """Every update of the run, in order. AssertionError where there were more than the log says.

    Adds to every row what the log does not have: its prompt, and under the policy before the step
    `previous` (log-probabilities) and `entropies_alone`.
    """
    settings = run.settings
    model, tokenizer = load_policy(run.base, "float64")
    reference = load_policy(run.base, "float64")[0] if settings.objective.kl_reference else None
    asked = questions.make_splits(settings.questions)["train"]
    prompts = {each.id: tokenizer(each.text).input_ids for each in asked}
    rewards = run.table("steps").sort("step")["reward"].to_list()
    remaining = iter(run.updates)
    for step in range(1, settings.training.steps + 1):
        rows = run.rows.filter(step=step).to_dicts()
        advantages = _advantages(rows, settings)
        trained = [row for row in rows if row["trained"]]
        groups = sorted({row["group"] for row in trained})
        parts = [groups[part :: settings.batch.updates] for part in range(settings.batch.updates)]
        for number, part in enumerate([each for each in parts if each] * settings.batch.passes):
            update = next(remaining)
            model.load_state_dict(update.weights)
            if number == 0:
                if reference and step - 1 == settings.training.last_life:
                    reference.load_state_dict(update.weights)
                for row in trained:
                    row["prompt_ids"] = prompts[row["question"]]
                    row["previous"], row["entropies_alone"] = scores_alone(model, row)
            chosen = [row for row in trained if row["group"] in part]
            clip = _clip(settings, rewards[: step - 1])
            yield _slow_update(
                step, chosen, advantages, clip, model, reference, update.gradient, settings
            )
    assert next(remaining, None) is None, "an update that the log does not tell of"


def _clip(settings: RunSettings, rewards: list[float]) -> str:
    """The clip of a step after steps with these pass@1; the delayed start is latched."""
    start = settings.experience.start
    started = start == "at_once" or (start != "never" and any(each > start for each in rewards))
    objective = settings.objective
    return objective.clip_after_start if started else objective.clip_before_start


def _advantages(rows: list[Row], settings: RunSettings) -> dict[str, float]:
    """Trajectory -> advantage, from the rewards; 0 in a group of another difficulty."""
    found = {}
    for group in {row["group"] for row in rows}:
        inside = [row for row in rows if row["group"] == group]
        counted = settings.buffer.count_replayed
        successes = sum(bool(row["correct"]) for row in inside if counted or not row["replayed"])
        used = [row for row in inside if row["trained"]]
        values = group_advantages(
            [math.nan if row["correct"] is None else float(row["correct"]) for row in used],
            [row["replayed"] for row in used],
            settings.objective,
        )
        off = masked(successes, settings.objective)
        found |= {row["trajectory"]: 0.0 if off else a for row, a in zip(used, values, strict=True)}
    return found


def forward_alone(model: PreTrainedModel, row: Row) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probabilities and entropies of one response, alone and without padding."""
    prompt, response = row["prompt_ids"], torch.tensor(row["token_ids"])
    ids = torch.tensor([[*prompt, *row["token_ids"]]])
    logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1]
    log_p = logits - logits.logsumexp(-1, keepdim=True)
    return log_p[torch.arange(len(response)), response], -(log_p.exp() * log_p).sum(-1)


@torch.no_grad()
def scores_alone(model: PreTrainedModel, row: Row) -> tuple[Array, Array]:
    log_p, entropies = forward_alone(model, row)
    return log_p.numpy(), entropies.numpy()


def _slow_update(
    step: int,
    rows: list[Row],
    advantages: dict[str, float],
    clip: str,
    model: PreTrainedModel,
    reference: PreTrainedModel | None,
    given: Gradient,
    settings: RunSettings,
) -> SlowUpdate:
    objective = settings.objective
    tokens = sum(row["length"] for row in rows)
    bonus = objective.entropy_bonus / tokens
    loss = size = 0.0
    parts = {}
    sums: dict[bool, Gradient] = {}
    for replayed in (True, False):
        for weight in model.parameters():
            weight.grad = torch.zeros_like(weight)
        for row in rows:
            if row["replayed"] is not replayed:
                continue
            log_p, entropies = forward_alone(model, row)
            logged = Logged(
                now=log_p.detach().numpy(),
                # The buffer stores float32, as the log does; a fresh one's behaviour policy is the
                # one before this step's update.
                behaviour=np.array(row["behaviour_logprobs"]) if replayed else row["previous"],
                previous=row["previous"],
                reference=scores_alone(reference, row)[0] if reference else None,
                advantage=advantages[row["trajectory"]],
                replayed=replayed,
            )
            # RePO: J_on and J_off are two means.
            mean = [r for r in rows if objective.baseline == "joint" or r["replayed"] is replayed]
            inside = sum(each["length"] for each in mean)
            share = token_share(
                row["length"], len(mean), inside, settings.rollout.max_new_tokens, objective
            )
            part = parts[row["trajectory"]] = sequence_part(logged, share, clip, objective)
            summed = float(entropies.detach().sum())
            loss += part.loss - bonus * summed
            size += abs(part.loss) + bonus * summed
            if part.slopes.any() or bonus:
                ((log_p * torch.tensor(part.slopes)).sum() - bonus * entropies.sum()).backward()
        sums[replayed] = {name: weight.grad for name, weight in model.named_parameters()}
    total = {name: sums[True][name] + sums[False][name] for name in given}
    scale = clip_scale(norm(total), settings.optimiser.grad_clip)
    clipped = {name: scale * each for name, each in total.items()}
    return SlowUpdate(step, loss, size, sums[False], sums[True], clipped, given, rows, parts)


def norm(gradient: Gradient) -> float:
    return math.sqrt(sum(float(each.square().sum()) for each in gradient.values()))


def distance(left: Gradient, right: Gradient) -> float:
    """Norm of the difference."""
    return norm({name: left[name] - right[name] for name in left})
