"""One step of the paper's Algorithm 1, line by line.

On-policy Dr.GRPO, ExGRPO and their relatives are the same step: with `experience.replay: none` no
question is drawn from the buffer and nothing is replayed.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from exgrpo import objective, step_records
from exgrpo.batch import (
    Group,
    Outcome,
    Row,
    fresh_row,
    in_order,
    learns,
    outcomes,
    replayed_row,
    reward_table,
    to_store,
    with_advantages,
)
from exgrpo.checkpoint import Progress
from exgrpo.context import RunContext
from exgrpo.experience import Event, Trajectory
from exgrpo.grading import Answer
from exgrpo.policy import TokenScores, TokenSequence, response_texts
from exgrpo.rollout import Sampling
from exgrpo.sampling import sample_and_grade
from exgrpo.scorer import score_sequences
from exgrpo.seeds import derived_seed, numpy_generator
from exgrpo.selection import (
    Candidate,
    Draw,
    bucket_weights,
    draw_questions,
    rank_candidates,
    released_metric,
)
from exgrpo.settings import Clip, RunSettings
from exgrpo.stream import take
from exgrpo.update import require_finite, update_policy


def train_step(
    context: RunContext, progress: Progress, checkpoint_seconds: float
) -> dict[str, Any]:
    """One step of Algorithm 1. Changes the policy and `progress`; returns the row of `steps`.

    checkpoint_seconds: what the checkpoint after the step before took; part of this step's row.

    Raises NonFiniteError once the rows of the step are with the recorder.
    """
    settings = context.settings
    clock = step_records.Clock()
    experience = settings.experience
    replay_on = progress.started and experience.replay != "none" and not progress.reincarnated

    draws = _draw_experience(context, progress) if replay_on else []
    groups, scores = _compose(context, progress, draws, replay_on)
    clock.lap("select")
    context.engine.sync()
    clock.lap("sync")
    rows = _roll_out(context, progress, groups, scores, clock)
    if settings.batch.learning_groups:
        groups, rows = _fill(context, progress, groups, rows, clock)
    context.engine.sleep()
    if replay_on and settings.join.when == "all_failed":
        groups, rows = _join_failed(context, progress, groups, rows)
        clock.lap("select")

    results = outcomes(rows, len(groups), settings)
    rewards, replayed = reward_table(rows, len(groups))
    advantages = objective.advantages(rewards, replayed, settings.objective)
    if settings.objective.difficulty:  # Masked GRPO (section 3.2): the others' loss is zero
        advantages[[not learns(result, settings) for result in results]] = 0.0
    rows = with_advantages(rows, advantages)
    update = update_policy(rows, settings, _clip(settings, progress), context.learner)
    clock.lap("update")

    collect = replay_on or (experience.replay != "none" and settings.buffer.collect_before_start)
    events = _learn_from(context, progress, rows, groups, results, collect)
    clock.lap("select")
    sampled = [row for row in rows if not row.replayed]
    progress.sampled_tokens += sum(len(row.entropies) for row in sampled)
    progress.started = _started(settings, progress, sampled)
    clock.phases["record"] = context.recorder.take_seconds()
    clock.phases["checkpoint"] = checkpoint_seconds
    progress.seconds += clock.total
    facts = step_records.StepFacts(rows, groups, results, rewards, update, replay_on)
    metrics = step_records.step_row(settings, progress, facts, clock)
    if context.processes.first:
        step_records.add_step(context.recorder, settings, progress.step, facts, events, metrics)
    require_finite(update, metrics["entropy"], context.policy)
    return metrics


def _clip(settings: RunSettings, progress: Progress) -> Clip:
    """ExGRPO takes the clip off every token once the start threshold has been passed."""
    rules = settings.objective
    return rules.clip_after_start if progress.started else rules.clip_before_start


def _draw_experience(context: RunContext, progress: Progress) -> list[Draw]:
    """Algorithms 1 and 2: min(|E|, floor(rho * B)) questions from the buffer, by their buckets."""
    settings = context.settings
    if settings.join.visit == "fresh":
        return []
    buckets, experience = progress.buffer.buckets, settings.experience
    room = _share_of(settings.batch.questions, experience.share)
    return draw_questions(
        buckets,
        min(room, _share_of(len(buckets), experience.buffer_share)),
        bucket_weights(settings.rollout.group_size, experience),
        numpy_generator(settings.seed, "draw", progress.step),
    )


def _share_of(count: int, share: float) -> int:
    """floor(share * count); 0.29 of 100 is 29, though the product is a hair less."""
    return int(share * count + 1e-9)


def _compose(
    context: RunContext, progress: Progress, draws: Sequence[Draw], replay_on: bool
) -> tuple[list[Group], dict[str, TokenScores]]:
    """Algorithm 1's batch: fresh questions, then the drawn ones with their ranked candidates.

    Returns the groups and the token scores of each candidate's response by its id.
    """
    groups = _fresh_groups(context, progress, context.settings.batch.questions - len(draws))
    for draw in draws:
        question = context.train_questions[draw.question]
        groups.append(Group(question, draw))
    join = context.settings.join
    joins = replay_on and join.when == "always"
    visited = [joins and (group.draw is None) == (join.visit == "fresh") for group in groups]
    return _select(context, progress, groups, visited)


def _fresh_groups(context: RunContext, progress: Progress, count: int) -> list[Group]:
    questions = list(context.train_questions.values())
    retired = progress.buffer.retired
    taken = take(progress.stream, questions, retired, count, context.settings)
    return [Group(question) for question in taken]


def _select(
    context: RunContext, progress: Progress, groups: Sequence[Group], joins: Sequence[bool]
) -> tuple[list[Group], dict[str, TokenScores]]:
    """Algorithm 1, line 11: score what is stored for these groups under the policy now, and rank.

    joins: the groups that take stored trajectories in.
    """
    settings = context.settings
    own = progress.buffer.stored if settings.join.source == "buffer" else context.outside
    if settings.experience.replay != "trajectory":
        own = {}
    stored = [
        own.get(group.question.id, ()) if joined else ()
        for group, joined in zip(groups, joins, strict=True)
    ]
    flat = [trajectory for kept in stored for trajectory in kept]
    whole = _score(context, [trajectory.sequence.whole for trajectory in flat])
    released = released_metric(
        [each.entropies.numpy() for each in whole],
        [len(trajectory) for trajectory in flat],
        settings.rollout.max_new_tokens,
    )
    scores = {
        trajectory.id: TokenScores(
            each.logprobs[-len(trajectory) :], each.entropies[-len(trajectory) :]
        )
        for trajectory, each in zip(flat, whole, strict=True)
    }
    candidates = iter(
        _candidate(trajectory, scores[trajectory.id], metric)
        for trajectory, metric in zip(flat, released, strict=True)
    )
    rng = numpy_generator(settings.seed, "choose", progress.step)
    selected = []
    for group, kept in zip(groups, stored, strict=True):
        ranked = rank_candidates([next(candidates) for _ in kept], settings.experience, rng)
        replays = min(settings.join.count, len(ranked))
        selected.append(dataclasses.replace(group, candidates=tuple(ranked), replays=replays))
    return selected, scores


def _score(context: RunContext, sequences: Sequence[TokenSequence]) -> list[TokenScores]:
    """Their scores under the policy now, by the trainer's own forward."""
    settings, learner = context.settings, context.learner
    budget = learner.hardware.token_budget(settings.batch.micro_batch_tokens)
    temperature = settings.rollout.temperature
    return score_sequences(learner.model, sequences, temperature, budget, learner.processes)


def _candidate(trajectory: Trajectory, scores: TokenScores, released: float) -> Candidate:
    return Candidate(
        trajectory,
        mean_entropy=scores.entropies.mean().item(),
        summed_entropy=scores.entropies.sum().item(),
        nll=-scores.logprobs.mean().item(),
        released=released,
    )


def _roll_out(
    context: RunContext,
    progress: Progress,
    groups: Sequence[Group],
    scores: Mapping[str, TokenScores],
    clock: step_records.Clock,
    earlier: Sequence[Group] = (),
) -> list[Row]:
    """Algorithm 1's rollouts: replayed trajectories in the first slots of a group, then fresh ones.

    All are graded while others are sampled: a batch beside the next, the replayed ones beside all.
    A rollout is decided by (seed, step, question, slot) and the policy; where a question comes a
    second time in a step, by its turn too. earlier: groups of this batch that are rolled out.
    """
    settings, run, step = context.settings, context.settings.run, progress.step
    first_group = len(earlier)
    sampling = Sampling(
        settings.rollout.temperature,
        settings.rollout.max_new_tokens,
        context.stop_ids,
        settings.rollout.batch,
    )
    taken = settings.join.place == "instead"
    seed = derived_seed(settings.seed, "rollout", step)
    turns = Counter(group.question.id for group in earlier)
    seeds = []
    for group in groups:
        question = group.question.id
        purpose, first = f"{question}/{turns[question]}", group.replays
        count = settings.rollout.group_size - taken * group.replays
        seeds.append([derived_seed(seed, purpose, slot) for slot in range(first, first + count)])
        turns[question] += 1
    with ThreadPoolExecutor(1, "grading-replayed") as beside:
        replayed = beside.submit(_replayed_rows, context, step, groups, scores, first_group)
        sampled = sample_and_grade(
            context.sampler,
            [group.question for group in groups],
            seeds,
            sampling,
            context.rules,
            lambda: clock.lap("rollout"),
        )
        rows = in_order(context.processes.gather(replayed.result()))
    clock.lap("grade")
    places = [
        (index, slot, group, each)
        for index, (group, own) in enumerate(zip(groups, sampled, strict=True), start=first_group)
        for slot, each in enumerate(own, start=group.replays)
    ]
    scored: Sequence[TokenScores | None] = [None] * len(places)
    if not context.engine.exact:
        scored = _score(
            context,
            [TokenSequence(group.prompt_ids, each.rollout.token_ids) for *_, group, each in places],
        )
        clock.lap("score")
    rows += [
        fresh_row(run, step, index, slot, group, each, own)
        for (index, slot, group, each), own in zip(places, scored, strict=True)
    ]
    return in_order([rows])


def _replayed_rows(
    context: RunContext,
    step: int,
    groups: Sequence[Group],
    scores: Mapping[str, TokenScores],
    first_group: int = 0,
    first_slot: int = 0,
) -> list[Row]:
    """The stored trajectories that join the groups, graded, as rows: the share of this process.

    first_group: number of the first group. first_slot: where a group's own begin.
    """
    joining = [
        (index, slot, group, candidate.trajectory)
        for index, group in enumerate(groups, start=first_group)
        for slot, candidate in enumerate(group.candidates[: group.replays], start=first_slot)
    ]
    chosen = context.processes.own(joining)
    texts = response_texts(
        context.tokenizer, [stored.token_ids.tolist() for *_, stored in chosen], context.stop_ids
    )
    verdicts = context.grader.grade_all(
        [
            Answer(group.question.gold, text, context.rules(group.question))
            for (_, _, group, _), text in zip(chosen, texts, strict=True)
        ]
    )
    run = context.settings.run
    return [
        replayed_row(run, step, index, slot, group, stored, scores[stored.id], text, verdict)
        for (index, slot, group, stored), text, verdict in zip(chosen, texts, verdicts, strict=True)
    ]


def _fill(
    context: RunContext,
    progress: Progress,
    groups: list[Group],
    rows: list[Row],
    clock: step_records.Clock,
) -> tuple[list[Group], list[Row]]:
    """DAPO's dynamic sampling: more fresh questions until `learning_groups` groups have signal.

    The first so many are trained on; the others stay in the log and leave the update.
    """
    settings = context.settings
    wanted = settings.batch.learning_groups
    count = settings.batch.questions if wanted == "all" else wanted or 0
    learning: list[int] = []
    for left in reversed(range(settings.batch.max_rounds)):
        results = outcomes(rows, len(groups), settings)
        learning = [index for index, result in enumerate(results) if learns(result, settings)]
        if len(learning) >= count or not left:
            break
        more = _fresh_groups(context, progress, settings.batch.questions)
        rows = rows + _roll_out(context, progress, more, {}, clock, earlier=groups)
        groups = groups + more
    kept = set(learning[:count])
    return groups, [dataclasses.replace(row, trained=row.group in kept) for row in rows]


def _join_failed(
    context: RunContext, progress: Progress, groups: Sequence[Group], rows: list[Row]
) -> tuple[list[Group], list[Row]]:
    """ARPO: in a group without a success, stored ones take the places of the last fresh ones.

    Those stay in the log and leave the update.
    """
    settings = context.settings
    size = settings.rollout.group_size
    failed = [result.failed for result in outcomes(rows, len(groups), settings)]
    joined, scores = _select(context, progress, groups, failed)
    rows = [
        dataclasses.replace(row, trained=row.slot < size - joined[row.group].replays)
        for row in rows
    ]
    stored = _replayed_rows(context, progress.step, joined, scores, first_slot=size)
    return joined, rows + in_order(context.processes.gather(stored))


def _learn_from(
    context: RunContext,
    progress: Progress,
    rows: Sequence[Row],
    groups: Sequence[Group],
    results: Sequence[Outcome],
    collect: bool,
) -> list[Event]:
    """Algorithm 1's update of E and S with every group of the step, experiential ones too.

    Before the start nothing is collected, but solved questions retire, as in the released code.
    A group with an ungraded trajectory changes nothing: its k of K is not known.
    """
    settings, buffer = context.settings, progress.buffer
    if settings.experience.replay == "none" or settings.join.source != "buffer":
        return []
    found: list[list[Trajectory]] = [[] for _ in groups]
    end = context.tokenizer.eos_token_id
    for row in rows:
        if stored := to_store(row, settings.buffer, end):
            found[row.group].append(stored)
    events = []
    size = settings.rollout.group_size
    for group, result, fitting in zip(groups, results, found, strict=True):
        question = group.question.id
        bucket = group.draw.bucket if group.draw else None
        for candidate in group.candidates[: group.replays]:
            events.append(Event(question, "replayed", candidate.trajectory.id, bucket, bucket))
        known = result.size > 0 and not result.ungraded
        if known and (collect or (result.solved and settings.buffer.retire)):
            new = fitting if collect else ()
            events += buffer.observe(question, result.successes, result.size, size, new)
    events += buffer.age(progress.step)
    rng = numpy_generator(settings.seed, "review", progress.step)
    return events + buffer.review(progress.step, size, rng)


def _started(settings: RunSettings, progress: Progress, sampled: Sequence[Row]) -> bool:
    """Delayed start: batch pass@1 above the threshold switches replay on, for good if latched."""
    start = settings.experience.start
    if isinstance(start, str):
        return start == "at_once"
    right = sum(row.verdict.correct is True for row in sampled)
    passed = right > start * len(sampled)
    return passed or (progress.started and settings.experience.latch)
