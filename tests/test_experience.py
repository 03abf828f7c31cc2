"""The buckets and the replay buffer, driven through random histories, against slow models."""

import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_buffer import SlowBuffer

from exgrpo.buckets import Buckets
from exgrpo.experience import Event, ReplayBuffer, Trajectory
from exgrpo.selection import bucket_weights, draw_questions
from exgrpo.settings import Buffer, Experience

K = 8
EVERY_DRAW = [
    Experience(draw="gaussian"),
    Experience(draw="linear"),
    Experience(draw="uniform"),
    Experience(draw="questions"),
]


def a_trajectory(
    question: str, name: str, step: int = 1, key: str = "", correct: bool = True, tokens: int = 2
) -> Trajectory:
    """Its token ids and log-probabilities are told by its name, so that a mix-up shows."""
    rng = np.random.default_rng(list(f"{question}{name}".encode()))
    return Trajectory(
        id=f"{question}:{step}:{name}",
        question=question,
        prompt_ids=[1, ord(question[0])],
        token_ids=rng.integers(0, 50_000, tokens).astype(np.int32),
        logprobs=-rng.random(tokens).astype(np.float32),
        birth_step=step,
        birth_entropy=float(rng.random()),
        correct=correct,
        key=key or name,
    )


# ---- buckets ----


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 3)), max_size=80))
def test_buckets_equal_a_dict(changes: list[tuple[str, int]]) -> None:
    """Bucket 0 stands for taking the question out."""
    buckets, model = Buckets(), dict[str, int]()
    for question, bucket in changes:
        if bucket:
            buckets.put(question, bucket)
            model[question] = bucket
        else:
            buckets.remove(question)
            model.pop(question, None)
        check_buckets(buckets, model)
    assert Buckets.of_members(buckets.members) == buckets


def check_buckets(buckets: Buckets, model: dict[str, int]) -> None:
    found = [(each, bucket) for bucket, inside in buckets.members.items() for each in inside]
    assert sorted(found) == sorted(model.items())
    assert all(buckets.members.values()), "an empty bucket is no bucket"
    assert len(buckets) == len(model)
    assert buckets.of("stranger") is None
    for question, bucket in model.items():
        assert buckets.of(question) == bucket
        assert buckets.members[bucket][buckets.places[question][1]] == question


# ---- the buffer against a slow model ----


def plain(events: list[Event]) -> list[tuple[Any, ...]]:
    return [
        (each.question, each.event, each.trajectory, each.bucket_before, each.bucket_after)
        for each in events
    ]


def content(buffer: ReplayBuffer) -> Any:
    """All that a buffer holds; arrays by their type and values."""

    def shown(kept: list[Trajectory]) -> list[Any]:
        return [
            [
                (name, value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value
                for name, value in vars(each).items()
            ]
            for each in kept
        ]

    return (
        buffer.rules,
        {bucket: list(inside) for bucket, inside in buffer.buckets.members.items()},
        dict(buffer.buckets.places),
        {question: shown(kept) for question, kept in buffer.stored.items()},
        list(buffer.born.items()),
        [(question, shown(kept)) for question, kept in buffer.retired.items()],
        buffer.tokens,
        buffer.bytes,
    )


@dataclass(frozen=True)
class Visit:
    """A graded group: `right` of `of` count; found: text, token spelling and verdict of each."""

    question: str
    right: int
    of: int
    found: list[tuple[int, int, bool]]


@dataclass(frozen=True)
class History:
    rules: Buffer
    size: int
    steps: list[list[Visit]]
    saved_after: int
    seed: int

    def found(self, step: int, place: int, visit: Visit) -> list[Trajectory]:
        """What these rules would store of a visit, with the key that each would have."""
        kept = []
        for slot, (text, spelling, correct) in enumerate(visit.found):
            if correct or self.rules.store == "all":
                keys = {
                    "text": f"{text}",
                    "token_ids": f"{text}/{spelling}",
                    "kept": f"{step}:{place}:{slot}",
                }
                key = keys[self.rules.duplicates]
                name = f"{place}:{slot}"
                kept.append(a_trajectory(visit.question, name, step, key, correct, 1 + text))
        return kept


def small() -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(1, 6)


@st.composite
def all_rules(draw: st.DrawFn) -> Buffer:
    reviewed = draw(st.booleans())
    return Buffer(
        store=draw(st.sampled_from(("successes", "all"))),
        duplicates=draw(st.sampled_from(("token_ids", "text", "kept"))),
        capacity=None if reviewed else draw(small()),
        per_question=draw(small()),
        max_age=None if reviewed else draw(small()),
        on_failure=draw(st.sampled_from(("stays", "moves_to_1", "leaves"))),
        retire=reviewed or draw(st.booleans()),
        review_share=draw(st.sampled_from((0.3, 1.0))) if reviewed else 0.0,
        review_every=draw(st.integers(1, 4)),
    )


VISIT = 8  # bytes that spell a visit


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Visits are spelt in bytes: drawn ten times faster than one by one, and they still shrink."""
    size = draw(st.sampled_from((2, 3, K)))
    length = VISIT * draw(st.integers(0, 40))
    spelt = draw(st.binary(min_size=length, max_size=length))
    steps: list[list[Visit]] = [[]]
    for start in range(0, length, VISIT):
        ends, question, counted, right, found, *attempts = spelt[start : start + VISIT]
        if ends % 3 == 0:
            steps.append([])
        of = size - counted % 2  # the replayed success counts or not
        tried = [(each % 4, each // 4 % 2, each % 5 > 1) for each in attempts[: found % 4]]
        steps[-1].append(Visit("abcde"[question % 5], right % (of + 1), of, tried))
    saved_after = draw(st.integers(0, len(steps)))
    return History(draw(all_rules()), size, steps, saved_after, draw(st.integers(0, 2**32)))


@settings(max_examples=3000, deadline=None)
@given(histories())
def test_the_buffer_equals_a_slow_model_and_goes_on_from_a_checkpoint(history: History) -> None:
    buffer = ReplayBuffer(history.rules)
    model = SlowBuffer(history.rules, history.size)
    seen: Counter[str] = Counter()
    saved = None
    for step, visits in enumerate(history.steps, start=1):
        if step > history.saved_after and saved is None:
            saved = through_a_file(buffer, history.rules)
        for place, visit in enumerate(visits):
            found = history.found(step, place, visit)
            if not visit.right and history.rules.store == "successes":
                found = []
            arguments = visit.question, visit.right, visit.of
            events = plain(buffer.observe(*arguments, history.size, found))
            assert events == model.observe(*arguments, found)
            seen.update(event for _, event, *_ in events)
            if saved:
                assert plain(saved.observe(*arguments, history.size, found)) == events
        aged = plain(buffer.age(step))
        assert aged == model.age(step)
        reviewed = plain(buffer.review(step, history.size, np.random.default_rng(step)))
        check_review(reviewed, model, step)
        seen.update(event for _, event, *_ in [*aged, *reviewed])
        if saved:
            assert plain(saved.age(step)) == aged
            again = plain(saved.review(step, history.size, np.random.default_rng(step)))
            assert again == reviewed
        check_equal(buffer, model)
    check_draws(buffer, saved or through_a_file(buffer, history.rules), history)
    dropped_unseen = not (seen["retired"] or seen["left"])
    if dropped_unseen:
        assert seen["stored"] - seen["evicted"] == len(buffer.born), "conservation"


def through_a_file(buffer: ReplayBuffer, rules: Buffer) -> ReplayBuffer:
    """The buffer of a checkpoint file, as `exgrpo.checkpoint` writes and reads it."""
    file = io.BytesIO()
    torch.save(buffer.state(), file)
    file.seek(0)
    again = ReplayBuffer.from_state(rules, torch.load(file, weights_only=True))
    assert content(again) == content(buffer)
    return again


def check_review(events: list[tuple[Any, ...]], model: SlowBuffer, step: int) -> None:
    """Retired Review: the share of those with a trajectory, every so many steps, and no others."""
    returned = [question for question, event, *_ in events if event == "returned"]
    able = [question for question, kept in model.retired.items() if kept]
    due = step % model.rules.review_every == 0
    assert len(returned) == (round(model.rules.review_share * len(able)) if due else 0)
    assert len(set(returned)) == len(returned)
    assert set(returned) <= set(able)
    assert events == model.review(returned)


def check_equal(buffer: ReplayBuffer, model: SlowBuffer) -> None:
    check_buckets(buffer.buckets, model.lies)
    assert not set(buffer.retired) & (set(buffer.buckets.places) | set(buffer.stored))
    assert set(buffer.buckets.places) <= set(buffer.stored), "a drawn question has a candidate"
    assert all(buffer.stored.values())
    assert list(buffer.born.items()) == [(each.id, each.question) for each in model.entries]
    assert buffer.stored == {each.question: model.of(each.question) for each in model.entries}
    assert buffer.retired == model.retired
    assert buffer.tokens == sum(len(each.token_ids) for each in model.entries)
    assert buffer.bytes == sum(  # what waits for the Retired Review lies in memory, too
        each.token_ids.nbytes + each.logprobs.nbytes
        for each in [*model.entries, *(each for kept in buffer.retired.values() for each in kept)]
    )
    sizes = [list(model.lies.values()).count(bucket) for bucket in range(1, model.size)]
    assert buffer.bucket_sizes(model.size) == sizes


def check_draws(buffer: ReplayBuffer, again: ReplayBuffer, history: History) -> None:
    """The buffer and the one that went on from the checkpoint: equal, and in every next draw."""
    assert content(again) == content(buffer)
    for experience in EVERY_DRAW:
        weights = bucket_weights(history.size, experience)
        for count in (1, 3, 9):
            one, other = (np.random.default_rng(history.seed) for _ in range(2))
            drawn = draw_questions(buffer.buckets, count, weights, one)
            assert drawn == draw_questions(again.buckets, count, weights, other)
            assert len(drawn) == len({each.question for each in drawn})
            assert len(drawn) == min(count, len(buffer.buckets))
            for each in drawn:
                assert buffer.buckets.of(each.question) == each.bucket
                assert buffer.stored[each.question]
                assert each.question not in buffer.retired


# ---- single rules, as a reader would say them ----


def visited(rules: Buffer, *counts: int) -> Iterator[tuple[ReplayBuffer, list[str]]]:
    """Question q with k successes of K, visit by visit, each with one new right trajectory."""
    buffer = ReplayBuffer(rules)
    for step, k in enumerate(counts, start=1):
        found = [a_trajectory("q", f"{step}", step)] if k else []
        events = buffer.observe("q", k, K, K, found)
        yield buffer, [event.event for event in [*events, *buffer.age(step)]]


def test_a_retired_question_never_comes_back() -> None:
    *_, (buffer, events) = visited(Buffer(), 3, K, 4, 0, 5)
    assert events == []
    assert (buffer.retired, buffer.stored, len(buffer.buckets)) == ({"q": []}, {}, 0)


def test_without_retirement_a_solved_question_lies_in_the_last_bucket() -> None:
    *_, (buffer, _) = visited(Buffer(retire=False), 3, K)
    assert buffer.buckets.of("q") == K - 1
    assert len(buffer.stored["q"]) == 2


@pytest.mark.parametrize(
    "rule, bucket, events",
    [("stays", 5, []), ("moves_to_1", 1, ["moved"]), ("leaves", None, ["left"])],
)
def test_a_visit_without_success(rule: Any, bucket: int | None, events: list[str]) -> None:
    *_, (buffer, last) = visited(Buffer(on_failure=rule), 5, 0)
    assert (buffer.buckets.of("q"), last) == (bucket, events)
    assert ("q" in buffer.stored) == (bucket is not None)


def test_a_trajectory_is_replayed_until_it_is_as_old_as_max_age() -> None:
    """Born at step 1, there after step 2, gone after step 3, and the question with it."""
    steps = [len(buffer.buckets) for buffer, _ in visited(Buffer(max_age=2), 5, 0, 0)]
    assert steps == [1, 1, 0]


def test_the_retired_review_brings_trajectories_back_into_the_last_bucket() -> None:
    buffer = ReplayBuffer(Buffer(review_share=1.0, review_every=5))
    buffer.observe("q", 4, K, K, [a_trajectory("q", "early", 1)])
    buffer.observe("q", K, K, K, [a_trajectory("q", "late", 2)])
    assert buffer.review(4, K, np.random.default_rng(0)) == []
    assert buffer.observe("q", 4, K, K, [a_trajectory("q", "between", 4)]) == []
    assert [each.event for each in buffer.review(5, K, np.random.default_rng(0))] == [
        "returned",
        "stored",
        "stored",
    ]
    assert buffer.buckets.of("q") == K - 1
    assert [each.id for each in buffer.stored["q"]] == ["q:1:early", "q:2:late"]
    assert "q" not in buffer.retired


def test_a_group_whose_successes_were_all_cut_off_does_not_enter() -> None:
    buffer = ReplayBuffer()
    assert buffer.observe("q", 3, K, K, []) == []
    assert len(buffer.buckets) == 0


def test_a_state_and_a_restored_buffer_are_of_their_own() -> None:
    """What the buffer does later does not reach a state taken before, nor the other way round."""
    buffer = ReplayBuffer()
    for question in "abc":
        buffer.observe(question, 3, K, K, [a_trajectory(question, "x")])
    before = content(buffer)
    state = buffer.state()
    buffer.observe("a", 5, K, K, [])
    restored = ReplayBuffer.from_state(Buffer(), state)
    assert content(restored) == before
    state["stored"]["token_ids"].zero_()
    state["stored"]["logprobs"].zero_()
    assert content(restored) == before
